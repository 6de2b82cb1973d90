import Glibc
import Pipeline

/// Prints the events of one load, twice: `print-events SOURCE [RECIPE]`.
///
/// The first load fetches from the origin and renders. The second load starts with the cached variant.
@main
struct PrintEvents {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 2 else {
            print("usage: print-events SOURCE [RECIPE]")
            exit(2)
        }
        var configuration = PipelineConfiguration()
        // The sample origin listens on loopback. The default configuration does not allow fetching from loopback.
        configuration.fetch.allowPrivateAddresses = .all
        let pipeline = try ImagePipeline(configuration)
        let recipe = try Recipe(arguments.count > 2 ? arguments[2] : "thumbnail:300")
        for round in 1...2 {
            print("load \(round)")
            let load = pipeline.load(ImageRequest(ImageSource(arguments[1]), recipe: recipe))
            for await event in load.events { print("  " + describe(event)) }
        }
        await pipeline.shutdown()
    }

    static func describe(_ event: LoadEvent) -> String {
        switch event {
        case .cached(let response):
            "cached in \(response.outcome), \(response.bytes.count) bytes\(response.isStale ? ", stale" : "")"
        case .fetching(let hadCached): "fetching the original\(hadCached ? " (a stored copy exists)" : "")"
        case .progress(let received, let expected): "received \(received) of \(expected.map(String.init) ?? "?") bytes"
        case .rendering: "rendering"
        case .finished(.success(let response)):
            "finished: \(response.width) × \(response.height) \(response.format), from \(response.outcome)"
        case .finished(.failure(let error)): "failed: \(error)"
        }
    }
}
