import InMemoryLogging
import Logging
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// A drawing that librsvg shows wrong is named by its information and in the log.
struct UnsupportedDrawingTests {
    private static func drawing(_ path: String) -> OriginReply {
        let fill = path == "/wrong.svg" ? "oklch(60% .2 30)" : "#08f"
        let body =
            "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'><rect width='9' height='9' fill='\(fill)'/></svg>"
        return .response(
            200, ["Content-Type": "image/svg+xml", "Cache-Control": "max-age=600"], body: Array(body.utf8))
    }

    @Test func `what is drawn wrong is logged at each render, and listed`() async throws {
        let log = InMemoryLogHandler()
        try await withPipeline {
            $0.rendering.renderer = InProcessRenderer(maxConcurrentRenders: 1, formats: Set(ImageFormat.decodable))
            $0.rendering.limits.formats.insert(.svg)
            $0.rendering.limits.svg = .raster
            $0.logger = Logger(label: "test") { _ in log }
        } handler: {
            Self.drawing($0.path)
        } _: { bench, pipeline in
            _ = try await pipeline.respond(to: bench.request("/right.svg"))
            #expect(log.entries.isEmpty)
            let request = try bench.request("/wrong.svg")
            for _ in 1...2 { _ = try await pipeline.respond(to: request) }
            #expect(log.entries.map(\.level) == [.warning])
            let message = log.entries.first?.message.description ?? ""
            #expect(message.contains("/wrong.svg") && message.contains("oklch()"), "\(message)")

            func json(_ path: String) async throws -> String {
                try await pipeline.information(for: bench.request(path, nil)).json(source: path)
            }
            #expect(try await json("/wrong.svg").contains("\"unsupportedFeatures\":[\"oklch()\"]"))
            #expect(try await !json("/right.svg").contains("unsupportedFeatures"))
        }
    }
}
