/// The counters of one tier behind memory, and of the queue in front of it, in this process.
package struct TierCounters: Sendable {
    package var name: TierName
    package var records: LookupCounters
    package var originals: LookupCounters
    package var variants: LookupCounters
    /// The number of calls that failed, and of changes that could not be stored.
    package var failures: Int
    /// The reason why the latest call failed, or nil if it succeeded.
    package var problem: String?
    /// The number of calls that were skipped.
    package var skips: Int
    /// The number of calls that have not returned.
    package var calls: Int
    /// The number of bytes that are waiting or being written.
    package var queuedBytes: Int
    /// The number of changes dropped because the queue was full.
    package var dropped: Int
}

/// The numbers of look-ups that did and did not find an entry.
package struct LookupCounters: Sendable, Hashable {
    package var hits = 0
    package var misses = 0

    mutating func add(isHit: Bool) { if isHit { hits += 1 } else { misses += 1 } }
}
