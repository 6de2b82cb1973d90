import Synchronization

/// What one tier behind memory, and the queue in front of it, has done in this process.
package struct TierCounters: Sendable {
    package var name: TierName
    package var records: LookupCounters
    package var originals: LookupCounters
    package var variants: LookupCounters
    /// Calls that failed, and changes that could not be stored.
    package var failures: Int
    /// Calls that were not made.
    package var skips: Int
    /// Calls that have not returned.
    package var calls: Int
    /// Bytes waiting or being written.
    package var queuedBytes: Int
    /// Changes dropped because the queue was full.
    package var dropped: Int
}

/// Look-ups that found an entry, and those that did not.
package struct LookupCounters: Sendable, Hashable {
    package var hits: Int
    package var misses: Int
}

/// Counts look-ups without a lock.
final class LookupCount: Sendable {
    private let hits = Atomic<Int>(0)
    private let misses = Atomic<Int>(0)

    func add(isHit: Bool) {
        if isHit { hits.add(1, ordering: .relaxed) } else { misses.add(1, ordering: .relaxed) }
    }

    var counters: LookupCounters {
        LookupCounters(hits: hits.load(ordering: .relaxed), misses: misses.load(ordering: .relaxed))
    }
}
