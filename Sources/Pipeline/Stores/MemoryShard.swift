/// One shard of a `MemoryStore`: a cache index with its counts. The same code whatever the store's values are.
///
/// Without a lock; the store holds it in a `Mutex`.
struct MemoryShard: ~Copyable, Sendable {
    private var index: CacheIndex<MemoryKey>
    private var hits = 0
    private var misses = 0
    private var insertions = 0
    private var refused = 0

    init(budget: Int, policy: any EvictionPolicy) {
        index = CacheIndex(budget: budget, policy: policy)
    }

    var counters: StoreCounters {
        var counters = StoreCounters(budget: index.budget)
        counters.hits = hits
        counters.misses = misses
        counters.insertions = insertions
        counters.evictions = index.evictions
        counters.refused = refused
        counters.entries = index.count
        counters.bytes = index.bytes
        return counters
    }

    mutating func find(_ key: MemoryKey, _ hash: UInt64) -> CacheLease? {
        guard let lease = index.use(key, hash: hash) else {
            misses += 1
            return nil
        }
        hits += 1
        return lease
    }

    mutating func peek(_ key: MemoryKey, _ hash: UInt64) -> CacheLease? { index.peek(key, hash: hash) }

    mutating func insert(
        _ key: MemoryKey, _ hash: UInt64, _ node: CacheNode, size: Int, cost: Double, name: String?
    ) -> Bool {
        guard size <= index.budget else {
            _ = index.remove(key, hash: hash)
            refused += 1
            return false
        }
        insertions += 1
        return index.insert(key, node, hash: hash, size: size, cost: cost, name: name)
    }

    mutating func update(_ key: MemoryKey, _ hash: UInt64, _ change: (CacheNode) -> CacheNode) -> Bool {
        index.update(key, hash: hash, change)
    }

    /// - Returns: bytes given back.
    mutating func reduce(to share: Double) -> Int {
        let (bytes, budget) = (index.bytes, index.budget)
        index.resize(to: Int(Double(bytes) * min(max(share, 0), 1)))
        index.resize(to: budget)
        return bytes - index.bytes
    }

    mutating func remove(_ key: MemoryKey, _ hash: UInt64) -> Bool { index.remove(key, hash: hash) }

    mutating func remove(named names: NameRange) -> [CacheNode] { index.remove(named: names) }

    mutating func remove(where matches: (CacheNode) -> Bool) -> Int { index.remove { matches($1) } }
}
