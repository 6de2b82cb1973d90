import Glibc
import Pipeline
import Synchronization
import TestSupport
import Variants

/// Random schedules over loads, loaders, caches and shutdowns, in a separate process, so that threads and descriptors
/// can be counted: `load-worker PICTURE FOLDER SEEDS`. Prints each failure, and exits with 1 after any.
@main
struct LoadWorker {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let picture = read(arguments[1]), let seeds = Int(arguments[3]) else { exit(2) }
        // After this the process holds everything that it keeps: libraries, the threads of tasks.
        for seed in 0..<4 { await Schedule(seed, picture, arguments[1], arguments[2]).run() }
        let before = (threads: count("/proc/self/task"), descriptors: count("/proc/self/fd"))
        var problems: [String] = []
        for seed in 0..<seeds {
            let schedule = await Schedule(seed, picture, arguments[1], arguments[2]).run()
            problems += schedule.map { "seed \(seed): \($0)" }
        }
        // The threads of a pipeline that was dropped close their files when they end.
        await filesClosed(downTo: before.descriptors)
        let after = (threads: count("/proc/self/task"), descriptors: count("/proc/self/fd"))
        // Tasks of each urgency run on a thread for each processor, made when they are needed. A pipeline that left a thread would
        // leave one for each seed.
        if after.threads > before.threads + 4 * Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) {
            problems.append("\(before.threads) threads became \(after.threads)")
        }
        if after.descriptors > before.descriptors {
            problems.append("\(before.descriptors) descriptors became \(after.descriptors): \(openFiles())")
        }
        for problem in problems { print(problem) }
        print("\(seeds) schedules, \(problems.count) problems")
        exit(problems.isEmpty ? 0 : 1)
    }

    private static func read(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        return Array(bytes[..<fread(&bytes, 1, bytes.count, file)])
    }

    private static func filesClosed(downTo most: Int) async {
        try? await waitWhile { count("/proc/self/fd") > most }
    }

    /// Where the descriptors of this process lead.
    private static func openFiles() -> String {
        (0..<256).compactMap { number in
            var target = [CChar](repeating: 0, count: 512)
            let length = readlink("/proc/self/fd/\(number)", &target, target.count - 1)
            return length < 0
                ? nil
                : "\(number) " + String(decoding: target.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }.joined(separator: ", ")
    }

    private static func count(_ folder: String) -> Int {
        guard let directory = opendir(folder) else { return -1 }
        defer { closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        return count
    }
}

/// Originals that come at random moments, change, are missing, are no pictures, or fail.
private final class Originals: OriginalProvider {
    struct Trouble: Error {}

    let picture: [UInt8]
    let file: String
    let random: Mutex<FuzzRandom>

    init(_ seed: Int, _ picture: [UInt8], _ file: String) {
        (self.picture, self.file) = (picture, file)
        random = Mutex(FuzzRandom(seed: UInt64(seed) ^ 0xFEED))
    }

    func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
        let (turns, chance) = random.withLock { ($0.below(30), $0.below(3)) }
        for _ in 0..<turns {
            await Task.yield()
            try Task.checkCancellation()
        }
        let maxAge: Duration? = [nil, .seconds(60), .seconds(3_600)][chance]
        switch path.first {
        case "w": return version == "1" ? .unchanged : .bytes(picture, version: "1", maxAge: maxAge)
        case "f": return .file(file, version: chance == 0 ? nil : "1", maxAge: maxAge)
        case "n": return .bytes(picture)
        case "b": return .bytes(Array("no picture".utf8), maxAge: maxAge)
        case "l": return .file(file + ".not-there")
        case "t": throw Trouble()
        default: return .missing
        }
    }
}

/// One pipeline, two loaders, and what happens to them.
private struct Schedule {
    /// Names of originals that load successfully unless their loads are ended, and names that always fail.
    private static let (good, bad) = (["w1", "w2", "f1", "n1"], ["b1", "l1", "t1", "m1"])

    private final class Watched {
        weak var load: LoadTask?
        let code: Task<PipelineError.Code?, Never>
        let isGood: Bool
        var mayEnd = false

        init(_ load: LoadTask, isGood: Bool) {
            self.load = load
            self.isGood = isGood
            code = Task.detached {
                do throws(PipelineError) {
                    _ = try await load.response
                    return nil
                } catch { return error.code }
            }
        }
    }

    private let seed: Int
    private let originals: Originals
    private let folder: String

    init(_ seed: Int, _ picture: [UInt8], _ file: String, _ folder: String) {
        (self.seed, self.folder) = (seed, folder)
        originals = Originals(seed, picture, file)
    }

    @discardableResult
    func run() async -> [String] {
        var random = FuzzRandom(seed: UInt64(seed))
        do {
            var configuration = PipelineConfiguration(memory: MemoryBudgets(originals: 1 << 20, variants: 1 << 20))
            if seed % 3 > 0 { configuration.cacheFolder = "\(folder)/\(seed % 7)" }
            if seed % 4 == 0 { configuration.maxWaiting = 8 }
            configuration.caching.errorMaxAge = .zero
            configuration.providers["x"] = originals
            let pipeline = try ImagePipeline(configuration)
            let problems = try await schedule(pipeline, &random)
            await pipeline.shutdown()
            return problems
        } catch {
            return ["\(error)"]
        }
    }

    private func loader(_ pipeline: ImagePipeline, _ random: inout FuzzRandom) -> ImageLoader {
        var configuration = LoaderConfiguration()
        configuration.maxConcurrentLoads = 1 + random.below(4)
        configuration.newestFirst = random.below(2) == 1
        if random.below(2) == 0 { configuration.maxWaiting = 1 + random.below(6) }
        return ImageLoader(pipeline, configuration)
    }

    private func request(_ random: inout FuzzRandom) throws -> (ImageRequest, isGood: Bool) {
        let isGood = random.below(3) > 0
        let name = isGood ? Self.good[random.below(4)] : Self.bad[random.below(4)]
        let recipe = [nil, "thumbnail:20", "thumbnail:30,webp"][random.below(3)]
        var request = ImageRequest(.url("x:\(name)"), recipe: try recipe.map { try Recipe($0) })
        request.priority = [.low, .normal, .high][random.below(3)]
        request.finishWhenAbandoned = random.below(4) == 0
        request.storage = random.below(5) == 0 ? [] : .all
        return (request, isGood)
    }

    private func schedule(_ pipeline: ImagePipeline, _ random: inout FuzzRandom) async throws -> [String] {
        let loaders = [loader(pipeline, &random), loader(pipeline, &random)]
        var watched: [Watched] = []
        var readers: [(task: Task<[Int], Never>, load: Watched)] = []
        let endsEarly = seed % 5 == 4
        for _ in 0..<50 {
            let one = watched.isEmpty ? nil : watched[random.below(watched.count)]
            let loader = loaders[random.below(2)]
            switch random.below(16) {
            case 0:
                one?.mayEnd = true
                one?.load?.cancel()
            case 1: one?.load?.priority = [.low, .normal, .high][random.below(3)]
            case 2:
                guard let one, let load = one.load else { break }
                readers.append((Task.detached { await load.events.reduce(into: []) { $0.append($1.place) } }, one))
            case 3:
                // The task that waits for the response may not have begun, so this may be the last task that waits.
                readers.last?.load.mayEnd = true
                readers.last?.task.cancel()
            case 4: loader.suspend()
            case 5: loader.resume()
            case 6 where random.below(4) == 0:
                for one in watched { one.mayEnd = true }
                loader.cancelAll()
            case 7: _ = try await pipeline.purge(.source(.url("x:w1")), mode: random.below(2) == 0 ? .soft : .hard)
            case 8 where random.below(4) == 0: try await pipeline.removeAll()
            case 9: pipeline.reduceMemory()
            case 10:
                pipeline.setMemoryBudgets(
                    MemoryBudgets(originals: random.below(1 << 20), variants: random.below(1 << 20)))
            case 11:
                let (request, isGood) = try request(&random)
                watched += loader.prefetch([request]).map { Watched($0, isGood: isGood) }
            case 12...13:
                let (request, isGood) = try request(&random)
                watched.append(Watched(loader.load(request), isGood: isGood))
            default:
                let (request, isGood) = try request(&random)
                watched.append(Watched(pipeline.load(request), isGood: isGood))
            }
            for _ in 0..<random.below(20) { await Task.yield() }
        }
        if endsEarly { await pipeline.shutdown() }
        for loader in loaders { loader.resume() }
        var problems: [String] = []
        for one in watched {
            let code = await one.code.value
            switch code {
            case nil: if !one.isGood { problems.append("a load that could not succeed did") }
            case .cancelled?: if !one.mayEnd, !endsEarly { problems.append("cancelled for no reason") }
            case .superseded?: break
            case .shutDown?: if !endsEarly { problems.append("shut down for no reason") }
            case .overloaded?: if seed % 4 > 0 { problems.append("overloaded without a bound") }
            case let code?: if one.isGood { problems.append("failed with \(code) although it could succeed") }
            }
        }
        for reader in readers {
            let places = await reader.task.value
            if places != places.sorted() { problems.append("events in the order \(places)") }
        }
        await pipeline.drain()
        for loader in loaders {
            // A prefetch that no caller waits for ends when it ends, and an end is counted right after the load has told it.
            do {
                try await waitWhile { loader.statistics.running + loader.statistics.waiting > 0 }
            } catch {
                problems.append("\(loader.statistics) after all have ended")
            }
        }
        for _ in 0..<10_000 where watched.contains(where: { $0.load != nil }) { await Task.yield() }
        let left = watched.count { $0.load != nil }
        if left > 0 { problems.append("\(left) of \(watched.count) loads are still held") }
        return problems
    }
}

extension LoadEvent {
    fileprivate var place: Int {
        switch self {
        case .cached: 0
        case .fetching: 1
        case .progress: 2
        case .rendering: 3
        case .finished: 4
        }
    }
}
