/// Replays requests without bodies, using GDSF-P, to compute the hits and misses that a budget would lead to.
///
/// The queue, ghost entries and budget work as in the memory tier. The replay is single-threaded and stores nothing.
@_spi(Benchmarks) public struct EvictionReplay: Sendable {
    private var index: CacheIndex<UInt64, Void>

    public init(capacity: Int) { index = CacheIndex(budget: capacity) }

    /// Replays one request. Returns whether it was a hit. A miss is followed by an insertion.
    public mutating func request(_ key: UInt64, size: Int, cost: Double) -> Bool {
        if index.use(key) != nil { return true }
        _ = index.insert(key, (), size: size, cost: cost)
        return false
    }

    /// The current number of bytes, which never exceeds the capacity.
    public var bytes: Int { index.bytes }
    /// The current number of objects.
    public var count: Int { index.count }
    /// The number of objects evicted to make room, including objects that were not kept at all.
    public var evictions: Int { index.evictions }
}
