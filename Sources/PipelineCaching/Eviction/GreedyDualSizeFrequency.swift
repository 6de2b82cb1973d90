/// GDSF-P, greedy-dual size-frequency with bypass and probation: keeps what saves most milliseconds per byte.
///
/// An entry's *worth* is its cost ÷ size. Its priority is the policy's clock at its last use plus uses × worth, so what
/// is small, costly and often used stays. The clock is the priority of the entry evicted last: as it rises, entries
/// that are no longer used fall behind those that come in, however often they were used before.
///
/// - *Probation*: an entry used once counts half, since most objects are never asked for again. One that comes back
///   while its key is remembered as evicted counts as used twice.
/// - *Bypass*: a newcomer joins the queue before room is made, so it may be the one to go.
///
/// References:
/// 1. P. Cao, S. Irani: Cost-Aware WWW Proxy Caching Algorithms. USITS 1997 (greedy-dual size: cost ÷ size, and a
///    clock in place of lowering every priority).
/// 2. L. Cherkasova: Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching Policy. HPL-98-69 (uses).
package struct GreedyDualSizeFrequency: EvictionPolicy {
    /// The priority of the most recently evicted entry; 0 before the first eviction. Never falls.
    package var clock = 0.0
    package var remembersEvicted: Bool { true }

    package init() {}

    package func admit(_ entry: inout EvictionEntry, wasEvicted: Bool, now: Double) {
        entry.uses = wasEvicted ? 2 : 1
        entry.since = clock
    }

    package func touch(_ entry: inout EvictionEntry, uses: Int, now: Double) {
        entry.count(uses: uses)
        entry.since = max(entry.since, clock)
    }

    package func priority(of entry: EvictionEntry) -> Double {
        // Costs come from a measurement or a file; an invalid one counts as zero.
        guard entry.cost > 0, entry.cost.isFinite else { return entry.since }
        let worth = entry.cost / Double(max(1, entry.size))
        return entry.since + (entry.uses <= 1 ? 0.5 : Double(entry.uses)) * worth
    }

    package mutating func evicted(_ entry: EvictionEntry) { clock = max(clock, priority(of: entry)) }
}
