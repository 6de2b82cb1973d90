/// What one tier of a store has done and holds.
public struct StoreCounters: Sendable, Hashable {
    /// Look-ups that found an entry.
    public var hits = 0
    /// Look-ups that found none.
    public var misses = 0
    /// Entries stored.
    public var insertions = 0
    /// Entries deleted to make room (not those removed by a purge or because they were damaged).
    public var evictions = 0
    /// Bodies not taken in because they exceed what the tier may hold.
    public var refused = 0
    /// Entries found damaged, and deleted.
    public var corrupt = 0
    /// Entries held now.
    public var entries = 0
    /// Bytes charged for them now, bookkeeping included.
    public var bytes = 0
    /// Bytes the tier may hold.
    public var budget = 0

    public init(budget: Int = 0) { self.budget = budget }
}
