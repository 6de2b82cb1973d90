import Glibc
import Pipeline

/// CPU of 1,000 and of 10,000 loads that wait at once: `queue-bench PICTURE PORT`, as `Benchmarks/run-queues` runs it.
///
/// The origin at PORT of 127.0.0.1 answers every path with a picture, but never below `/silent/`. CPU is user and system
/// time of this process, the least of three rounds. Exits with 1 if ten times as many loads cost more than twelve times
/// as much.
@main
struct QueueBench {
    struct Originals: OriginalProvider {
        let bytes: [UInt8]

        // Decoders ignore bytes after a picture's end. They make each original different.
        func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
            .bytes(bytes + Array(path.utf8), version: "1", maxAge: .seconds(600))
        }
    }

    static let counts = [1_000, 10_000]

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let picture = read(arguments[1]), let port = Int(arguments[2]) else {
            print("usage: queue-bench PICTURE PORT")
            exit(2)
        }
        let origin = "http://127.0.0.1:\(port)"
        let recipe = try Recipe("thumbnail:8,png")
        let ways: [(String, (ImagePipeline, Int) async throws -> Void)] = [
            ("transfers", { try await respond($0, requests($1) { "\(origin)/\($0)" }) }),
            ("renders", { try await respond($0, requests($1, recipe) { "own:\($0)" }) }),
            (
                "ImageLoader",
                { pipeline, count in
                    let loader = ImageLoader(pipeline)
                    let loads = requests(count) { "own:\($0)" }.map { loader.load($0) }
                    for load in loads { _ = try await load.response }
                }
            ),
            (
                "cancelled transfers, and the next",
                { pipeline, count in
                    let loads = requests(count) { "\(origin)/silent/\($0)" }.map { pipeline.load($0) }
                    for load in loads { load.cancel() }
                    for load in loads { _ = try? await load.response }
                    try await respond(pipeline, requests(1) { "http://localhost:\(port)/after\($0)" })
                }
            ),
            (
                "cancelled by an ImageLoader",
                { pipeline, count in
                    let loader = ImageLoader(pipeline)
                    let loads = requests(count) { "\(origin)/silent/\($0)" }.map { loader.load($0) }
                    for load in loads.reversed() { load.cancel() }
                    for load in loads { _ = try? await load.response }
                }
            ),
        ]
        var isQuadratic = false
        for (name, load) in ways {
            var costs: [Double] = []
            for count in counts {
                var least = Double.infinity
                for _ in 0..<3 {
                    let pipeline = try pipeline(picture)
                    try await respond(pipeline, requests(1, recipe) { "own:first\($0)" })
                    let before = processor()
                    try await load(pipeline, count)
                    least = min(least, processor() - before)
                    await pipeline.shutdown()
                }
                costs.append(least)
            }
            let ratio = costs[1] / costs[0]
            isQuadratic = isQuadratic || ratio > 12
            print("\(name): \(Int(costs[0] * 1e3)) ms, \(Int(costs[1] * 1e3)) ms: \((ratio * 10).rounded() / 10) ×")
        }
        if isQuadratic { exit(1) }
    }

    static func pipeline(_ picture: [UInt8]) throws -> ImagePipeline {
        var configuration = PipelineConfiguration(memory: MemoryBudgets(originals: 512 << 20, variants: 64 << 20))
        configuration.fetch.allowPrivateAddresses = .all
        configuration.fetch.maxRetries = 0
        configuration.providers["own"] = Originals(bytes: picture)
        return try ImagePipeline(configuration)
    }

    static func requests(_ count: Int, _ recipe: Recipe? = nil, _ source: (Int) -> String) -> [ImageRequest] {
        (0..<count).map { ImageRequest(.url(source($0)), recipe: recipe) }
    }

    static func respond(_ pipeline: ImagePipeline, _ requests: [ImageRequest]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for request in requests { group.addTask { _ = try await pipeline.respond(to: request) } }
            try await group.waitForAll()
        }
    }

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
