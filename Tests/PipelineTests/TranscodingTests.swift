import InMemoryLogging
import Logging
import TestSupport
import Testing
import Variants

@testable import Pipeline

struct TranscodingTests {
    @Test func `an original that cannot be transcoded is logged when it is rendered, and explained`() async throws {
        let log = InMemoryLogHandler()
        try await withPipeline {
            $0.logger = Logger(label: "test") { _ in log }
        } handler: { request in
            let name = request.path == "/cmyk.jpg" ? "cmyk.jpg" : "night-tiny.jpg"
            return picture(name, ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let kept = try await pipeline.respond(to: bench.request("/a.jpg", "jxl:transcode"))
            #expect(kept.format == .jxl && log.entries.isEmpty)
            let encoded = try await pipeline.respond(to: bench.request("/cmyk.jpg", "jxl:transcode"))
            #expect(encoded.format == .jxl && log.entries.map(\.level) == [.warning])
            let message = log.entries.first?.message.description ?? ""
            #expect(message.contains("/cmyk.jpg") && message.contains("CMYK"), "\(message)")

            for (path, isKept) in [("/a.jpg", true), ("/cmyk.jpg", false)] {
                let variant = try await pipeline.explain(bench.request(path, "jxl:transcode")).variant
                #expect(variant?.output?.transcodes == isKept && variant?.tier != nil)
                #expect((variant?.refusedTranscoding == nil) == isKept)
                // Encoded pixels have the same key as a plain `jxl`.
                let plain = try await pipeline.explain(bench.request(path, "jxl")).variant
                #expect((plain?.key == variant?.key) != isKept)
            }
        }
    }
}
