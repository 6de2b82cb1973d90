/// One shard of a `MemoryStore`: a cache index with its counts.
///
/// A value type without a lock; the store holds it in a `Mutex`.
struct MemoryShard<Value: Sendable>: Sendable {
    private struct Stored: Sendable {
        var value: Value
        var body: [UInt8]
    }

    private var index: CacheIndex<String, Stored>
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

    mutating func find(_ key: String, _ hash: UInt64) -> (value: Value, body: [UInt8])? {
        guard let stored = index.use(key, hash: hash) else {
            misses += 1
            return nil
        }
        hits += 1
        return (stored.value, stored.body)
    }

    func peek(_ key: String, _ hash: UInt64) -> (value: Value, body: [UInt8])? {
        index.peek(key, hash: hash).map { ($0.value, $0.body) }
    }

    mutating func insert(
        _ key: String, _ hash: UInt64, value: Value, body: [UInt8], size: Int, cost: Double
    ) -> Bool {
        guard size <= index.budget else {
            _ = index.remove(key, hash: hash)
            refused += 1
            return false
        }
        insertions += 1
        return index.insert(key, hash: hash, Stored(value: value, body: body), size: size, cost: cost)
    }

    mutating func update(_ key: String, _ hash: UInt64, _ change: (inout Value) -> Void) -> Bool {
        index.update(key, hash: hash) { change(&$0.value) }
    }

    /// - Returns: bytes given back.
    mutating func reduce(to share: Double) -> Int {
        let (bytes, budget) = (index.bytes, index.budget)
        index.resize(to: Int(Double(bytes) * min(max(share, 0), 1)))
        index.resize(to: budget)
        return bytes - index.bytes
    }

    mutating func remove(_ key: String, _ hash: UInt64) -> Bool { index.remove(key, hash: hash) }

    mutating func remove(where matches: (String, Value) -> Bool) -> Int {
        index.remove { key, stored in matches(key, stored.value) }
    }
}
