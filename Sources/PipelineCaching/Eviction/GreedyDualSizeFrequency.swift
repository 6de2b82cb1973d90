/// The size, cost and access count of an entry, which determine its eviction.
package struct EvictionEntry: Sendable, Hashable {
    /// The number of bytes charged for the entry, at least 1.
    package var size: Int
    /// The time that rendering or fetching the entry again would take, in milliseconds, at least 0.
    package var cost: Double
    /// The access count, which saturates at 255.
    package var uses: UInt8 = 0
    /// The policy's clock at the last access.
    package var since = 0.0

    /// Adds to the access count, up to its maximum of 255.
    mutating func count(uses count: Int) { uses = UInt8(clamping: Int(uses) + min(count, 255)) }
}

/// The eviction policy GDSF-P, greedy-dual size-frequency with bypass and probation. It keeps the entries that save the
/// most milliseconds per byte.
///
/// An entry's *worth* is its cost ÷ size. Its priority is the policy's clock at its last access plus access count ×
/// worth, so small, costly and popular entries stay. The clock is the priority of the last evicted entry. As the clock
/// advances, entries without further accesses fall behind new entries, however popular they were before.
///
/// - *Probation*: the worth of an entry that was accessed only once is halved, because most objects are never requested
///   again. An entry that returns while its key is remembered as evicted counts as accessed twice.
/// - *Bypass*: a new entry joins the queue before room is made, so it may be the one that is evicted.
///
/// Tiers keep entries in a queue ordered by *stored* priority, lowest first. An access only changes `uses` and `since`,
/// and does not touch the queue. Before an eviction, the policy recomputes the priority of the entry at the front. If
/// it has risen, the policy moves the entry back. Otherwise, it evicts the entry. A hit is therefore O(1) in memory and
/// costs no index write on disk.
///
/// References:
/// - P. Cao, S. Irani: Cost-Aware WWW Proxy Caching Algorithms. USITS 1997 (greedy-dual size: cost ÷ size, and a clock
///   in place of lowering every priority).
/// - L. Cherkasova: Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching Policy. HPL-98-69 (access
///   counts).
package struct GreedyDualSizeFrequency: Sendable {
    /// The priority of the most recently evicted entry, or 0 before the first eviction. It never decreases, and is
    /// stored with the entries if they outlive the process.
    package var clock = 0.0

    package init() {}

    /// Sets `uses` and `since` of a new entry.
    ///
    /// - Parameter wasEvicted: whether the entry's key is among the ghost entries, which are the most recent evictions
    ///   that a tier remembers.
    package func admit(_ entry: inout EvictionEntry, wasEvicted: Bool) {
        entry.uses = wasEvicted ? 2 : 1
        entry.since = clock
    }

    /// Adds accesses. `since` never decreases.
    package func touch(_ entry: inout EvictionEntry, uses: Int) {
        entry.count(uses: uses)
        entry.since = max(entry.since, clock)
    }

    /// Returns the priority of an entry. The entry with the lowest priority is evicted first. Accesses alone never
    /// lower it.
    package func priority(of entry: EvictionEntry) -> Double {
        // Costs come from a measurement or a file. An invalid cost counts as zero.
        guard entry.cost > 0, entry.cost.isFinite else { return entry.since }
        let worth = entry.cost / Double(max(1, entry.size))
        return entry.since + (entry.uses <= 1 ? 0.5 : Double(entry.uses)) * worth
    }

    /// Records that an entry was evicted to make room.
    package mutating func evicted(_ entry: EvictionEntry) { clock = max(clock, priority(of: entry)) }
}
