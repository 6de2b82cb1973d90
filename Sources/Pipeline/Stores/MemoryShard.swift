/// One shard of a `MemoryStore`: a cache index with its counts. The same code whatever the store's values are.
///
/// Without a lock; the store holds it in a `Mutex`.
struct MemoryShard: ~Copyable, Sendable {
    typealias Node = CacheNode<MemoryKey>

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

    mutating func find(_ key: MemoryKey, _ hash: UInt64) -> Node? {
        guard let node = index.use(key, hash: hash) else {
            misses += 1
            return nil
        }
        hits += 1
        return node
    }

    func peek(_ key: MemoryKey, _ hash: UInt64) -> Node? { index.peek(key, hash: hash) }

    mutating func insert(_ node: Node, _ hash: UInt64, size: Int, cost: Double, name: String?) -> Bool {
        guard size <= index.budget else {
            _ = index.remove(node.key, hash: hash)
            refused += 1
            return false
        }
        insertions += 1
        return index.insert(node, hash: hash, size: size, cost: cost, name: name)
    }

    mutating func update(_ key: MemoryKey, _ hash: UInt64, _ change: (Node) -> Node) -> Bool {
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

    mutating func remove(named names: NameRange) -> [Node] { index.remove(named: names) }

    mutating func remove(where matches: (Node) -> Bool) -> Int { index.remove(where: matches) }
}
