/// What one tier behind memory, and the queue in front of it, has done in this process.
package struct TierCounters: Sendable {
    package var name: TierName
    package var records: LookupCounters
    package var originals: LookupCounters
    package var variants: LookupCounters
    /// Calls that failed, and changes that could not be stored.
    package var failures: Int
    /// Why the latest call failed; nil if it succeeded.
    package var problem: String?
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
    package var hits = 0
    package var misses = 0

    mutating func add(isHit: Bool) { if isHit { hits += 1 } else { misses += 1 } }
}
