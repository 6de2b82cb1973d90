/// What an eviction policy knows about one entry.
package struct EvictionEntry: Sendable, Hashable {
    /// Bytes charged for the entry; ≥ 1.
    package var size: Int
    /// Milliseconds that making or fetching it again would take; ≥ 0.
    package var cost: Double
    /// Access count, saturating at 255.
    package var uses: UInt8 = 0
    /// The policy's clock at the last access.
    package var since = 0.0

    /// Adds to the access count, saturating.
    mutating func count(uses count: Int) { uses = UInt8(clamping: Int(uses) + min(count, 255)) }
}

/// Decides which entry to evict when a tier is full: pure bookkeeping without time, locks or I/O.
///
/// Tiers keep entries in a queue ordered by *stored* priority, lowest first. An access only changes `uses` and `since`;
/// the queue is not touched. On eviction the policy computes the priority of the front entry again: if it has risen,
/// the entry moves back, otherwise it is evicted. So a hit is O(1) in memory and costs no index write on disk.
///
/// `now` is a number that never falls: a count of calls in memory, Unix time on disk. Policies with a clock of their
/// own may ignore it.
package protocol EvictionPolicy: Sendable {
    /// The policy's whole state apart from the entries; stored with them if they outlive the process.
    var clock: Double { get set }
    /// Whether tiers should remember the keys of as many evicted entries as they hold (ghost entries).
    var remembersEvicted: Bool { get }
    /// Sets `uses` and `since` of a new entry.
    /// - Parameter wasEvicted: whether its key is among the ghost entries.
    func admit(_ entry: inout EvictionEntry, wasEvicted: Bool, now: Double)
    /// Adds accesses; `since` never falls.
    func touch(_ entry: inout EvictionEntry, uses: Int, now: Double)
    /// The entry with the lowest priority is evicted first. Accesses alone must never lower it.
    func priority(of entry: EvictionEntry) -> Double
    /// Called when an entry was evicted to make room.
    mutating func evicted(_ entry: EvictionEntry)
}

/// Evicts the entry that was not accessed for longest, whatever its size and its cost.
package struct LeastRecentlyUsed: EvictionPolicy {
    /// The last access of the most recently evicted entry.
    package var clock = 0.0
    package var remembersEvicted: Bool { false }

    package init() {}

    package func admit(_ entry: inout EvictionEntry, wasEvicted: Bool, now: Double) {
        entry.uses = 1
        entry.since = now
    }

    package func touch(_ entry: inout EvictionEntry, uses: Int, now: Double) {
        entry.count(uses: uses)
        entry.since = max(entry.since, now)
    }

    package func priority(of entry: EvictionEntry) -> Double { entry.since }

    package mutating func evicted(_ entry: EvictionEntry) { clock = max(clock, entry.since) }
}
