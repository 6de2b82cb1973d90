@testable import PipelineCaching
import Testing

@testable import Pipeline

@Suite struct EvictionPolicyTests {
    @Test func `an entry used once counts half, one used more often counts fully`() {
        let policy = GreedyDualSizeFrequency()
        var entry = EvictionEntry(size: 100, cost: 40)
        policy.admit(&entry, wasEvicted: false)
        #expect(entry.uses == 1)
        #expect(policy.priority(of: entry) == 0.2)
        policy.touch(&entry, uses: 1)
        #expect(policy.priority(of: entry) == 0.8)
        policy.touch(&entry, uses: 3)
        #expect(policy.priority(of: entry) == 2)
    }

    @Test func `an entry that comes back while it is remembered is past probation`() {
        let policy = GreedyDualSizeFrequency()
        var entry = EvictionEntry(size: 100, cost: 40)
        policy.admit(&entry, wasEvicted: true)
        #expect(entry.uses == 2)
        #expect(policy.priority(of: entry) == 0.8)
    }

    @Test func `the clock is the priority of the entry evicted last, and uses start from it`() {
        var policy = GreedyDualSizeFrequency()
        policy.evicted(EvictionEntry(size: 10, cost: 30, uses: 2))
        #expect(policy.clock == 6)
        var entry = EvictionEntry(size: 10, cost: 10, uses: 4, since: 1)
        policy.touch(&entry, uses: 1)
        #expect(entry.since == 6 && entry.uses == 5)
        #expect(policy.priority(of: entry) == 11)
        policy.evicted(EvictionEntry(size: 10, cost: 10, uses: 1, since: 1))
        #expect(policy.clock == 6)
        policy.touch(&entry, uses: 1_000_000)
        #expect(entry.uses == 255)
    }

    @Test(arguments: [0, -5, .nan, .infinity]) func `an invalid cost makes an entry worth nothing`(cost: Double) {
        let policy = GreedyDualSizeFrequency()
        #expect(policy.priority(of: EvictionEntry(size: 10, cost: cost, uses: 9, since: 3)) == 3)
        #expect(policy.priority(of: EvictionEntry(size: 0, cost: 1, uses: 2, since: 3)) == 5)
    }

    @Test func `a ring remembers the last hashes, whatever comes twice`() {
        var generator = Numbers(state: 3)
        var ring = GhostRing()
        var model: [Int] = []
        for round in 0..<20_000 {
            let hash = Int(generator.next() % 300) << 32 | 7
            let limit = round < 10_000 ? 1 + round / 100 : 40
            ring.append(hash, limit: limit)
            model.append(hash)
            if model.count > limit { model.removeFirst(model.count - limit) }
            #expect(ring.count == model.count)
            let asked = Int(generator.next() % 300) << 32 | 7
            #expect(ring.contains(asked) == model.contains(asked))
        }
        ring.append(1, limit: 0)
        #expect(ring.count == 0 && !ring.contains(1))
    }
}

/// Numbers that are equal in every run.
struct Numbers {
    var state: UInt64

    mutating func next() -> UInt32 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt32(truncatingIfNeeded: state >> 33)
    }
}
