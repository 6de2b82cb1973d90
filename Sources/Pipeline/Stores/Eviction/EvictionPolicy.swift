/// What an eviction policy knows of one entry.
public struct EvictionEntry: Sendable, Hashable {
    /// Bytes charged for the entry; ≥ 1.
    public var size: Int
    /// Milliseconds that making or fetching it again would take; ≥ 0.
    public var cost: Double
    /// Where the policy's clock stood at the last use.
    public var since: Double
    /// Times used, saturating at 255.
    public var uses: UInt8

    public init(size: Int, cost: Double, uses: UInt8 = 0, since: Double = 0) {
        self.size = size
        self.cost = cost
        self.uses = uses
        self.since = since
    }

    /// Counts uses, saturating.
    mutating func count(uses count: Int) { uses = UInt8(clamping: Int(uses) + min(count, 255)) }
}

/// Decides which entry goes when a tier is full: pure bookkeeping without time, locks or I/O.
///
/// Tiers keep entries in a queue ordered by *stored* priority, lowest first. A use only changes `uses` and `since`;
/// the queue is not touched. On eviction the entry at the front is asked for its priority anew: when that has risen
/// the entry moves back, otherwise it goes. So a hit is O(1) in memory and costs no index write on disk.
///
/// `now` is a number that never falls: a count of calls in memory, Unix time on disk. Policies with a clock of their
/// own may ignore it.
public protocol EvictionPolicy: Sendable {
    /// How far the policy has come: all it knows beside the entries, and kept with them where they outlive the process.
    var clock: Double { get set }
    /// Whether tiers should remember the keys of as many evicted entries as they hold (a ghost ring).
    var remembersEvicted: Bool { get }
    /// Sets `uses` and `since` of an entry that comes in.
    /// - Parameter wasEvicted: whether its key is remembered as evicted not long ago.
    func admit(_ entry: inout EvictionEntry, wasEvicted: Bool, now: Double)
    /// Notes uses; `since` never falls.
    func touch(_ entry: inout EvictionEntry, uses: Int, now: Double)
    /// The lowest goes first. Must not fall while the entry is only used.
    func priority(of entry: EvictionEntry) -> Double
    /// Learns that an entry went to make room.
    mutating func evicted(_ entry: EvictionEntry)
}

/// The entry unused for longest goes first, whatever it weighs and whatever it costs to make again.
public struct LeastRecentlyUsed: EvictionPolicy {
    /// When the entry evicted last was last used.
    public var clock = 0.0
    public var remembersEvicted: Bool { false }

    public init() {}

    public func admit(_ entry: inout EvictionEntry, wasEvicted: Bool, now: Double) {
        entry.uses = 1
        entry.since = now
    }

    public func touch(_ entry: inout EvictionEntry, uses: Int, now: Double) {
        entry.count(uses: uses)
        entry.since = max(entry.since, now)
    }

    public func priority(of entry: EvictionEntry) -> Double { entry.since }

    public mutating func evicted(_ entry: EvictionEntry) { clock = max(clock, entry.since) }
}
