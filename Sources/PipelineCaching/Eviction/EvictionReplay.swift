/// Replays requests, without bodies, against an eviction policy to find the hits and misses that a budget would give.
///
/// The queue, ghost entries and budget work as in the memory tier. Single-threaded; nothing is stored.
@_spi(Benchmarks) public struct EvictionReplay: Sendable {
    private var index: CacheIndex<UInt64, Void>

    /// - Parameter isRecency: whether the entry not accessed for longest is evicted, instead of what GDSF-P says.
    public init(capacity: Int, isRecency: Bool = false) {
        index = CacheIndex(
            budget: capacity, policy: isRecency ? LeastRecentlyUsed() : GreedyDualSizeFrequency())
    }

    /// Replays one request and returns whether it was a hit; a miss is followed by an insertion.
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
