import CChecksum
import Testing

@testable import Pipeline

/// Digests of bodies as they arrive, alone and two side by side.
struct BodyDigestTests {
    private func collector(_ body: [UInt8], pieces length: Int = 1_000) -> BodyCollector {
        let collector = BodyCollector()
        for start in stride(from: 0, to: body.count, by: length) {
            body[start..<min(body.count, start + length)].withUnsafeBytes { _ = collector.append($0) }
        }
        return collector
    }

    @Test(.enabled(if: sha256_pair_is_supported()), arguments: [0, 1, 63, 64, 119, 4_096])
    func `two messages side by side have the digests they have alone`(other: Int) {
        let second = bytes(other, seed: 7)
        let longer = (0..<20).map { _ in Int.random(in: 301...100_000) }
        for count in Array(0...300) + longer {
            let first = bytes(count, seed: count)
            let digests = BodyCollector.sha256(first, second)
            #expect(digests.0.withUnsafeBytes { hex($0) } == sha256Hex(first), "\(count) and \(other)")
            #expect(digests.1.withUnsafeBytes { hex($0) } == sha256Hex(second), "\(count) and \(other)")
        }
    }

    @Test(arguments: [1, 1_000, 65_536, 65_537, 300_000])
    func `a body has its digest, whatever others are hashed with it`(
        length: Int
    ) {
        let bodies = [15_000, length, 0, 14_000, length, 70_000, 3].enumerated().map { bytes($1, seed: $0) }
        let collectors = bodies.map { collector($0) }
        for (body, collector) in zip(bodies, collectors) { #expect(collector.digest == sha256Hex(body)) }
        BodyCollector.takeDigests(of: collectors)
        for (body, collector) in zip(bodies, collectors) { #expect(collector.digest == sha256Hex(body)) }
    }
}
