@testable import PipelineFetching
@testable import PipelineSupport
import Testing

@testable import Pipeline

/// Digests of bodies as they arrive.
struct BodyDigestTests {
    private func collector(_ body: [UInt8], pieces length: Int = 1_000) -> BodyCollector {
        let collector = BodyCollector()
        for start in stride(from: 0, to: body.count, by: length) {
            body[start..<min(body.count, start + length)].withUnsafeBytes { _ = collector.append($0) }
        }
        return collector
    }

    @Test(arguments: [1, 1_000, 65_536, 65_537, 300_000])
    func `a body has its digest, however it arrives`(
        length: Int
    ) {
        let bodies = [15_000, length, 0, 14_000, length, 70_000, 3].enumerated().map { bytes($1, seed: $0) }
        let collectors = bodies.map { collector($0) }
        for (body, collector) in zip(bodies, collectors) { #expect(collector.digest == sha256Hex(body)) }
    }
}
