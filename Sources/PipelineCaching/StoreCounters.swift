/// Counts the events of one kind of entry in a tier, and its current entries and bytes. Read it from `TierStatistics`.
public struct StoreCounters: Sendable, Hashable {
    /// The number of look-ups that found an entry.
    public var hits = 0
    /// The number of look-ups that found no entry.
    public var misses = 0
    /// The number of hits with a stale response, for which the origin was contacted (on disk, records only).
    public var stale = 0
    /// The number of bytes in the bodies that hits returned (disk only).
    public var bytesSaved = 0
    /// The time that these bodies had cost, in milliseconds (disk only). This is the CPU time for rendering variants
    /// and the wall time for fetching originals.
    public var millisecondsSaved = 0.0
    /// The number of stored entries.
    public var insertions = 0
    /// The number of entries deleted to make room, excluding purged and damaged entries.
    public var evictions = 0
    /// The number of bodies refused because they exceed the tier's capacity.
    public var refused = 0
    /// The number of entries that were found damaged and deleted.
    public var corrupt = 0
    /// The current number of entries.
    public var entries = 0
    /// The bytes currently charged for the entries, including bookkeeping.
    public var bytes = 0
    /// The maximum number of bytes in the tier.
    public var budget = 0

    /// Creates counters that are zero, with a budget in bytes.
    public init(budget: Int = 0) { self.budget = budget }

    /// The event counters and their columns in the index, except `millisecondsSaved`.
    static let events: [(column: String, path: any WritableKeyPath<StoreCounters, Int> & Sendable)] = [
        ("hits", \.hits), ("misses", \.misses), ("stale", \.stale), ("insertions", \.insertions),
        ("evictions", \.evictions), ("refused", \.refused), ("corrupt", \.corrupt), ("bytes_saved", \.bytesSaved),
    ]

    /// Adds the event counters of `other`. `entries`, `bytes` and `budget` do not change.
    mutating func add(_ other: StoreCounters) {
        for event in Self.events { self[keyPath: event.path] += other[keyPath: event.path] }
        millisecondsSaved += other.millisecondsSaved
    }
}
