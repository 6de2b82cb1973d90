import Glibc
import Pipeline

/// CPU per hit of the ways to ask a pipeline: `load-bench PICTURE [ROUNDS]`, as `Benchmarks/run-loads` runs it.
///
/// Every round measures each way once, in turn, so that what else the machine does falls on all of them. CPU is user and
/// system time of the process.
@main
struct LoadBench {
    /// Originals by name, and how often they were asked for.
    struct Originals: OriginalProvider {
        let bytes: [String: [UInt8]]
        /// nil to be asked by each request, and to answer that nothing has changed.
        let maxAge: Duration?

        func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
            if version == "1" { return .unchanged }
            return bytes[path].map { .bytes($0, version: "1", maxAge: maxAge) } ?? .missing
        }
    }

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 2, let picture = read(arguments[1]) else {
            print("usage: load-bench PICTURE [ROUNDS]")
            exit(2)
        }
        let rounds = arguments.count > 2 ? Int(arguments[2]) ?? 20 : 20
        // Bytes after a picture's end are not decoded.
        let originals = ["small": picture, "large": picture + [UInt8](repeating: 0, count: 40_000_000 - picture.count)]
        var configuration = PipelineConfiguration(memory: MemoryBudgets(originals: 256 << 20, variants: 64 << 20))
        configuration.providers["kept"] = Originals(bytes: originals, maxAge: .seconds(86_400))
        configuration.providers["asked"] = Originals(bytes: originals, maxAge: nil)
        let pipeline = try ImagePipeline(configuration)
        let recipe = try Recipe("thumbnail:64,jpeg")
        func request(_ source: String) -> ImageRequest { ImageRequest(.url(source), recipe: recipe) }
        let hit = request("kept:small")
        var ways: [(name: String, calls: Int, ask: () async throws -> Void)] = [
            ("respond", 2_000, { _ = try await pipeline.respond(to: hit) }),
            ("load, response", 2_000, { _ = try await pipeline.load(hit).response }),
            ("cachedImage", 2_000, { if pipeline.cachedImage(for: hit) == nil { exit(1) } }),
        ]
        for source in ["kept:small", "kept:large", "asked:small", "asked:large"] {
            let request = request(source)
            ways.append((source, 500, { _ = try await pipeline.respond(to: request) }))
        }
        let (file, loader) = (ImageRequest(.file(arguments[1]), recipe: recipe), ImageLoader(pipeline))
        var timed = file
        timed.timeout = .seconds(30)
        ways += [
            ("file, respond", 1_000, { _ = try await pipeline.respond(to: file) }),
            ("file, load", 1_000, { _ = try await pipeline.load(file).response }),
            ("file, loader", 1_000, { _ = try await loader.load(file).response }),
            ("file, timeout", 1_000, { [timed] in _ = try await pipeline.respond(to: timed) }),
        ]
        for way in ways { try await way.ask() }
        var times = [[Double]](repeating: [], count: ways.count)
        for _ in 0..<rounds {
            for (at, way) in ways.enumerated() {
                let before = processor()
                for _ in 0..<way.calls { try await way.ask() }
                times[at].append((processor() - before) / Double(way.calls))
            }
        }
        let medians = times.map { $0.sorted()[$0.count / 2] }
        for (way, median) in zip(ways, medians) {
            let reference =
                way.name.hasPrefix("file")
                ? "file, respond"
                : way.name.hasSuffix("large")
                    ? way.name.replacing("large", with: "small") : "respond"
            let base = medians[ways.firstIndex { $0.name == reference }!]
            print(way.name, "\(tenths(median * 1e6)) µs,", "\(tenths(median / base * 10) / 10) ×")
        }
        await pipeline.shutdown()
    }

    static func tenths(_ value: Double) -> Double { (value * 10).rounded() / 10 }

    /// Seconds of user and system time so far.
    static func processor() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
    }

    static func read(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        return Array(bytes[..<fread(&bytes, 1, bytes.count, file)])
    }
}
