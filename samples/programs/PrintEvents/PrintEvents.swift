import Glibc
import Pipeline
import Variants

/// Prints the events of one load, twice: `print-events SOURCE [RECIPE]`.
///
/// The first load fetches from the origin and renders; the second starts with the cached variant.
@main
struct PrintEvents {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 2 else {
            print("usage: print-events SOURCE [RECIPE]")
            exit(2)
        }
        var configuration = PipelineConfiguration()
        // The sample origin listens on loopback, which the default configuration refuses to fetch from.
        configuration.fetch.allowPrivateAddresses = .all
        let pipeline = try ImagePipeline(configuration)
        let recipe = try Recipe(arguments.count > 2 ? arguments[2] : "thumbnail:300")
        for round in 1...2 {
            print("load \(round)")
            do {
                for try await event in pipeline.load(ImageRequest(ImageSource(arguments[1]), recipe: recipe)) {
                    print("  " + describe(event))
                }
            } catch {
                print("  failed: \(error)")
            }
        }
        await pipeline.shutdown()
    }

    static func describe(_ event: LoadEvent) -> String {
        switch event {
        case .cached(let response, let outcome, let isStale):
            "cached in \(outcome), \(response.bytes.count) bytes\(isStale ? ", stale" : "")"
        case .requesting(let hadCached): "requesting the original\(hadCached ? " (a stored copy exists)" : "")"
        case .progress(let received, let expected): "received \(received) of \(expected.map(String.init) ?? "?") bytes"
        case .finished(let response):
            "finished: \(response.width) × \(response.height) \(response.format), from \(response.outcome)"
        }
    }
}
