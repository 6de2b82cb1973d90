/// Plays requests against an eviction policy and tells hits from misses, without bodies: what a budget would give.
///
/// The queue, the ghost ring and the budget are those of the memory tier. Single-threaded; nothing is stored.
public struct EvictionReplay: Sendable {
    private var index: CacheIndex<UInt64, Void>

    /// - Parameters:
    ///   - capacity: bytes that may be kept; ≥ 0.
    ///   - policy: what decides who goes.
    public init(capacity: Int, policy: any EvictionPolicy = GreedyDualSizeFrequency()) {
        index = CacheIndex(budget: capacity, policy: policy)
    }

    /// One request; a miss is followed by an insertion.
    ///
    /// - Parameters:
    ///   - size: bytes charged for the object; 0 counts as 1.
    ///   - cost: what making it again costs, in any unit.
    /// - Returns: whether it was a hit.
    public mutating func request(_ key: UInt64, size: Int, cost: Double) -> Bool {
        if index.use(key) != nil { return true }
        _ = index.insert(key, (), size: size, cost: cost)
        return false
    }

    /// Bytes kept now; never above the capacity.
    public var bytes: Int { index.bytes }
    /// Objects kept now.
    public var count: Int { index.count }
    /// Objects that went to make room, those that were not kept at all included.
    public var evictions: Int { index.evictions }
}
