/// Replays requests, without bodies, against an eviction policy to find the hits and misses that a budget would give.
///
/// The queue, ghost entries and budget work as in the memory tier. Single-threaded; nothing is stored.
public struct EvictionReplay: Sendable {
    private var index: CacheIndex<UInt64, Void>

    /// - Parameters:
    ///   - capacity: bytes that may be kept; ≥ 0.
    ///   - policy: decides which objects are evicted.
    public init(capacity: Int, policy: any EvictionPolicy = GreedyDualSizeFrequency()) {
        index = CacheIndex(budget: capacity, policy: policy)
    }

    /// Replays one request; a miss is followed by an insertion.
    ///
    /// - Parameters:
    ///   - size: bytes charged for the object; 0 counts as 1.
    ///   - cost: cost of making it again, in any unit.
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
    /// Objects evicted to make room, including those that were not kept at all.
    public var evictions: Int { index.evictions }
}
