import Glibc
import Synchronization
@_spi(Benchmarks) import Variants

/// Renders files over and over in one process and prints the CPU time each render took.
///
///     render-bench [--quality fast|balanced|best] [--recipe TEXT]... [--shared] [--repeat N] [--workers N]
///         [--cancel | --out FOLDER] FILE...
///
/// It prints one line: `<images> <CPU ms per image> <CPU ms of start-up> <wall ms per image> <peak MB>`. CPU time is
/// the user and system time of the process and its workers, all threads; start-up covers everything up to and including
/// the first, uncounted renders (start of libvips). Peak memory is this process's plus the largest worker's.
///
/// With several recipes, all of them are rendered at the same time for each image; with `--shared` they share its
/// decode.
///
/// With `--workers N`, renders run in N worker processes, which run this same executable, N images at a time. With
/// `--cancel`, each render is cancelled while it runs, some early and some late, and the line is `<renders> <median ms>
/// <99th percentile ms> <worst ms> <workers killed>`: the time from the cancellation to the result of the next render,
/// which is of a single pixel and requested at once. With `--out FOLDER`, every file is rendered once and nothing is
/// printed; the output is named as the file without its extension, or `NAME-1`, `NAME-2`, … if there are several
/// recipes.
@main
struct RenderBench {
    var quality = RenderQuality.balanced
    var recipes: [String] = []
    var shares = false
    var rounds = 5
    var workers = 0
    var cancels = false
    var folder: String?
    var files: [String] = []

    static func main() async {
        RenderWorker.runIfAsked()
        do {
            try await RenderBench(CommandLine.arguments.dropFirst()).run()
        } catch {
            let message = Array("render-bench: \(error)\n".utf8)
            _ = write(STDERR_FILENO, message, message.count)
            exit(1)
        }
    }

    init(_ arguments: ArraySlice<String>) throws(BenchError) {
        var rest = arguments
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("--") else {
                files.append(argument)
                continue
            }
            if argument == "--cancel" || argument == "--shared" {
                if argument == "--cancel" { cancels = true } else { shares = true }
                continue
            }
            guard let value = rest.popFirst() else { throw BenchError("\(argument) needs a value") }
            switch argument {
            case "--quality":
                guard let known = RenderQuality(rawValue: value) else { throw BenchError("unknown quality `\(value)`") }
                quality = known
            case "--recipe": recipes.append(value)
            case "--out": folder = value
            case "--workers":
                guard let count = Int(value), count > 0 else { throw BenchError("--workers: `\(value)` is no count") }
                workers = count
            case "--repeat":
                guard let count = Int(value), count > 0 else { throw BenchError("--repeat: `\(value)` is no count") }
                rounds = count
            default: throw BenchError("unknown option \(argument)")
            }
        }
        if files.isEmpty { throw BenchError("no files given") }
        if recipes.isEmpty { recipes = ["thumbnail:300x300,jpeg:80"] }
        if recipes.count > 1, cancels { throw BenchError("--cancel takes one recipe") }
    }

    func run() async throws {
        let renderer: any Renderer
        if workers > 0 {
            var configuration = WorkerConfiguration()
            configuration.maxConcurrentRenders = workers
            configuration.executable = "/proc/self/exe"
            let pool = WorkerPool(configuration)
            try await pool.prepare()
            // Starts must not count towards the cost of a render.
            while pool.statistics.started < workers { try await Task.sleep(for: .milliseconds(1)) }
            renderer = pool
        } else {
            renderer = InProcessRenderer(maxConcurrentRenders: 1)
        }
        let recipes = try recipes.map { try Recipe($0) }
        let images = try files.map { try jobs($0, recipes) }
        if let folder { return try await save(renderer, images, to: folder) }
        for _ in 0..<max(1, workers * 2) { _ = try await renderer.render(images[0][0]) }
        if cancels { return try await cancelled(renderer, images.map { $0[0] }) }
        let start = Self.cpuMilliseconds()
        let began = ContinuousClock.now
        let all = (0..<rounds).flatMap { _ in images }
        // Each task takes the next image when it is done: images differ in size, so equal shares would not be equal
        // work.
        let turns = Turns()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<max(1, workers) {
                group.addTask {
                    while case let index = turns.next(), index < all.count {
                        try await Self.render(all[index], renderer)
                    }
                }
            }
            try await group.waitForAll()
        }
        let wall = Self.milliseconds(began.duration(to: .now))
        let perImage = (Self.cpuMilliseconds() - start) / Double(all.count)
        await renderer.shutdown()
        print(
            all.count, Self.rounded(perImage), Self.rounded(start), Self.rounded(wall / Double(all.count)),
            Self.peakMegabytes())
    }

    /// One job per recipe for a file.
    private func jobs(_ file: String, _ recipes: [Recipe]) throws -> [RenderJob] {
        let bytes = try Self.read(file)
        let header = try ImageHeader.probe(bytes)
        let jobs = recipes.map { recipe in
            RenderJob(original: bytes, header: header, recipe: recipe, quality: quality)
        }
        guard shares else { return jobs }
        guard let shared = RenderJob.sharing(jobs, named: file) else {
            throw BenchError("\(file): nothing to share")
        }
        return shared
    }

    /// Renders one image, all its recipes at the same time.
    private static func render(_ jobs: [RenderJob], _ renderer: any Renderer) async throws {
        if jobs.count == 1 {
            _ = try await renderer.render(jobs[0])
            return
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for job in jobs { group.addTask { _ = try await renderer.render(job) } }
            try await group.waitForAll()
        }
    }

    private func save(_ renderer: any Renderer, _ images: [[RenderJob]], to folder: String) async throws {
        for (path, jobs) in zip(files, images) {
            let name = path.split(separator: "/").last.map(String.init) ?? path
            let stem = name.lastIndex(of: ".").map { String(name[..<$0]) } ?? name
            for (index, job) in jobs.enumerated() {
                let bytes = try await renderer.render(job).bytes
                try Self.save(bytes, "\(folder)/\(stem)" + (jobs.count > 1 ? "-\(index + 1)" : ""))
            }
        }
        await renderer.shutdown()
    }

    /// Measures the time from cancelling a running render to the result of the next one, which is of a single pixel.
    private func cancelled(_ renderer: any Renderer, _ jobs: [RenderJob]) async throws {
        let next = try Self.pixel()
        var whole: [Duration] = []
        for job in jobs {
            let began = ContinuousClock.now
            _ = try await renderer.render(job)
            whole.append(began.duration(to: .now))
        }
        var times: [Double] = []
        for round in 0..<rounds {
            // Cancel after 5 % to 95 % of the render's time, evenly spread and in no particular order.
            let share = 0.05 + 0.9 * (Double(round) * 0.618_034).truncatingRemainder(dividingBy: 1)
            for (job, whole) in zip(jobs, whole) {
                let task = Task { try await renderer.render(job) }
                try await Task.sleep(for: whole * share)
                let asked = ContinuousClock.now
                task.cancel()
                _ = try await renderer.render(next)
                let time = Self.milliseconds(asked.duration(to: .now))
                // Skip renders that finished before the cancellation: they had nothing to stop.
                if case .failure = await task.result { times.append(time) }
                try await Self.rest(renderer)
            }
        }
        let killed = (renderer as? WorkerPool)?.statistics.killed ?? 0
        await renderer.shutdown()
        times.sort()
        func percentile(_ share: Double) -> Double {
            times.isEmpty ? 0 : times[min(times.count - 1, Int(Double(times.count) * share))]
        }
        print(
            times.count, Self.rounded(percentile(0.5)), Self.rounded(percentile(0.99)), Self.rounded(percentile(1)),
            killed)
    }

    /// Waits until cancelled renders have stopped or their workers were killed, and every killed worker was replaced.
    private static func rest(_ renderer: any Renderer) async throws {
        try await Task.sleep(for: .milliseconds(110))
        guard let pool = renderer as? WorkerPool else { return }
        while case let all = pool.statistics, all.started < 1 + all.killed + all.recycled {
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    /// The smallest possible job: a grey pixel.
    private static func pixel() throws -> RenderJob {
        let bytes: [UInt8] = [
            137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0,
            58, 126, 155, 85, 0, 0, 0, 10, 73, 68, 65, 84, 120, 218, 99, 104, 0, 0, 0, 130, 0, 129, 218, 69, 8,
            59, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
        ]
        return RenderJob(original: bytes, header: try ImageHeader.probe(bytes), recipe: try Recipe("png"))
    }

    private static func milliseconds(_ duration: Duration) -> Double {
        Double(duration.components.seconds) * 1e3 + Double(duration.components.attoseconds) / 1e15
    }

    private static func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }

    /// User and system time so far of this process and of all its workers, running and exited.
    private static func cpuMilliseconds() -> Double {
        usage(RUSAGE_SELF.rawValue).cpu + usage(RUSAGE_CHILDREN.rawValue).cpu
            + children().reduce(0, +)
    }

    private static func usage(_ who: __rusage_who.RawValue) -> (cpu: Double, peak: Int) {
        var usage = rusage()
        getrusage(__rusage_who_t(who), &usage)
        let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        let microseconds = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
        return (Double(seconds) * 1000 + Double(microseconds) / 1000, usage.ru_maxrss)
    }

    private static func peakMegabytes() -> Int {
        (usage(RUSAGE_SELF.rawValue).peak + usage(RUSAGE_CHILDREN.rawValue).peak) / 1024
    }

    /// CPU milliseconds of each running child so far, from its CPU clock, since /proc counts only in hundredths of a
    /// second.
    private static func children() -> [Double] {
        guard let processes = opendir("/proc") else { return [] }
        defer { closedir(processes) }
        var result: [Double] = []
        while let entry = readdir(processes) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard let process = pid_t(name), let bytes = try? read("/proc/\(name)/stat") else { continue }
            let text = String(decoding: bytes, as: UTF8.self)
            guard let end = text.lastIndex(of: ")") else { continue }
            // Fields from the third, the state, on; the next one is the parent's process ID.
            let fields = text[text.index(after: end)...].split(separator: " ")
            guard fields.count > 1, Int(fields[1]) == Int(getpid()) else { continue }
            var clock = clockid_t()
            var used = timespec()
            guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &used) == 0 else { continue }
            result.append(Double(used.tv_sec) * 1000 + Double(used.tv_nsec) / 1e6)
        }
        return result
    }

    private static func save(_ bytes: [UInt8], _ path: String) throws(BenchError) {
        guard let file = fopen(path, "wb") else { throw BenchError("cannot write \(path)") }
        let written = bytes.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, file) }
        guard fclose(file) == 0, written == bytes.count else { throw BenchError("cannot write \(path)") }
    }

    private static func read(_ path: String) throws(BenchError) -> [UInt8] {
        guard let file = fopen(path, "rb") else { throw BenchError("cannot open \(path)") }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = fread(&part, 1, part.count, file)
            if count == 0 { return bytes }
            bytes += part[..<count]
        }
    }
}

/// A thread-safe counter from 0.
private final class Turns: Sendable {
    private let count = Atomic(0)
    func next() -> Int { count.add(1, ordering: .relaxed).oldValue }
}

/// A wrong argument or an unreadable file.
struct BenchError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// The common part of the two renderers.
private protocol Renderer: Sendable {
    func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant
    func shutdown() async
}

extension WorkerPool: Renderer {}
extension InProcessRenderer: Renderer {
    func shutdown() async {}
}
