/// What an eviction policy knows of one entry.
public struct EvictionEntry: Sendable, Hashable {
    /// Bytes charged for the entry; ≥ 1.
    public var size: Int
    /// Milliseconds that making or fetching it again would take.
    public var cost: Double
    /// Times used, saturating at 255.
    public var uses: UInt8
    /// Where the policy's clock stood at the last use.
    public var since: Double

    public init(size: Int, cost: Double, uses: UInt8 = 0, since: Double = 0) {
        self.size = size
        self.cost = cost
        self.uses = uses
        self.since = since
    }
}

/// Decides which entry goes when a tier is full: pure bookkeeping without a clock, a lock or I/O.
///
/// Tiers keep entries in a queue ordered by *stored* priority, lowest first. A use only changes `uses` and `since`;
/// the queue is not touched. On eviction the entry at the front is asked for its priority anew: when that has risen
/// the entry moves back, otherwise it goes. So a hit is O(1) in memory and costs no index write on disk.
public protocol EvictionPolicy: Sendable {
    /// Sets `uses` and `since` of an entry that comes in. `now` only ever grows.
    mutating func admit(_ entry: inout EvictionEntry, now: Double)
    /// Notes one use.
    func touch(_ entry: inout EvictionEntry, now: Double)
    /// The lowest goes first. Must not fall while the entry is only used.
    func priority(of entry: EvictionEntry) -> Double
    /// Learns that an entry went to make room.
    mutating func evicted(_ entry: EvictionEntry)
}

/// The entry unused for longest goes first.
public struct LeastRecentlyUsed: EvictionPolicy {
    public init() {}

    public func admit(_ entry: inout EvictionEntry, now: Double) {
        entry.uses = 1
        entry.since = now
    }

    public func touch(_ entry: inout EvictionEntry, now: Double) {
        entry.uses = entry.uses == .max ? .max : entry.uses + 1
        entry.since = max(entry.since, now)
    }

    public func priority(of entry: EvictionEntry) -> Double { entry.since }

    public func evicted(_ entry: EvictionEntry) {}
}
