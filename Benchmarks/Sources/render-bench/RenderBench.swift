import Glibc
import Variants

/// Renders files over and over in one process and prints the CPU time each render took.
///
///     render-bench [--quality fast|balanced|best] [--recipe TEXT] [--repeat N] FILE...
///
/// One line on stdout: `<images> <CPU ms an image> <CPU ms before the first render>`. User and system time of the whole
/// process, all threads; the time before and in the first, uncounted render (start of libvips) is the third number.
@main
struct RenderBench {
    var quality = RenderQuality.balanced
    var recipe = "thumbnail:300x300,jpeg:80"
    var rounds = 5
    var files: [String] = []

    static func main() async {
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
            guard let value = rest.popFirst() else { throw BenchError("\(argument) needs a value") }
            switch argument {
            case "--quality":
                guard let known = RenderQuality(rawValue: value) else { throw BenchError("unknown quality `\(value)`") }
                quality = known
            case "--recipe": recipe = value
            case "--repeat":
                guard let count = Int(value), count > 0 else { throw BenchError("--repeat: `\(value)` is no count") }
                rounds = count
            default: throw BenchError("unknown option \(argument)")
            }
        }
        if files.isEmpty { throw BenchError("no files given") }
    }

    func run() async throws {
        let renderer = InProcessRenderer(threads: 1)
        let recipe = try Recipe(recipe)
        var jobs: [RenderJob] = []
        for file in files {
            let bytes = try Self.read(file)
            let header = try ImageHeader.probe(bytes)
            jobs.append(
                RenderJob(
                    original: bytes, header: header, recipe: recipe, output: recipe.resolvedOutput(for: header),
                    quality: quality))
        }
        _ = try await renderer.render(jobs[0])
        let start = Self.cpuMilliseconds()
        for _ in 0..<rounds {
            for job in jobs { _ = try await renderer.render(job) }
        }
        let images = rounds * jobs.count
        let perImage = (Self.cpuMilliseconds() - start) / Double(images)
        print(images, Self.rounded(perImage), Self.rounded(start))
    }

    private static func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }

    /// User and system time of this process so far.
    private static func cpuMilliseconds() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        let microseconds = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
        return Double(seconds) * 1000 + Double(microseconds) / 1000
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

/// A wrong argument or an unreadable file.
struct BenchError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
