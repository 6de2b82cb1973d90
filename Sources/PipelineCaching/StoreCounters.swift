/// The event counters and the contents of one tier of a store.
public struct StoreCounters: Sendable, Hashable {
    /// Look-ups that found an entry.
    public var hits = 0
    /// Look-ups that found none.
    public var misses = 0
    /// Hits whose stored response was no longer fresh, so that the origin was contacted (on disk, records only).
    public var stale = 0
    /// Bytes of the bodies that hits returned (disk only).
    public var bytesSaved = 0
    /// Milliseconds those bodies had cost (disk only): CPU time of rendering variants, duration of fetching originals.
    public var millisecondsSaved = 0.0
    /// Entries stored.
    public var insertions = 0
    /// Entries deleted to make room (not those removed by a purge or because they were damaged).
    public var evictions = 0
    /// Bodies refused because they exceed what the tier may hold.
    public var refused = 0
    /// Entries that were found damaged and deleted.
    public var corrupt = 0
    /// Entries held now.
    public var entries = 0
    /// Bytes charged for them now, bookkeeping included.
    public var bytes = 0
    /// Bytes the tier may hold.
    public var budget = 0

    public init(budget: Int = 0) { self.budget = budget }

    /// Adds another's event counters; `entries`, `bytes` and `budget` stay as they are.
    mutating func add(_ other: StoreCounters) {
        hits += other.hits
        misses += other.misses
        stale += other.stale
        bytesSaved += other.bytesSaved
        millisecondsSaved += other.millisecondsSaved
        insertions += other.insertions
        evictions += other.evictions
        refused += other.refused
        corrupt += other.corrupt
    }

    /// Counts one more hit and what it saved.
    mutating func countHit(bytes: Int, milliseconds: Double) {
        hits += 1
        bytesSaved += bytes
        millisecondsSaved += milliseconds
    }

    /// Takes back a hit whose body turned out to be damaged or missing.
    mutating func takeBackHit(bytes: Int, milliseconds: Double) {
        hits -= 1
        bytesSaved -= bytes
        millisecondsSaved -= milliseconds
    }
}
