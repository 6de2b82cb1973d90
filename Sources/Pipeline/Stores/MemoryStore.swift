import Synchronization

/// Keeps entries with their bodies in memory, within a budget of bytes.
///
/// Synchronous and safe to call from any thread; no call blocks on more than another call's bookkeeping. Keys are
/// spread over shards with a lock each. Each shard enforces its share of the budget, so the whole never exceeds it.
public final class MemoryStore<Value: Sendable>: Sendable {
    /// Bytes charged for an entry beside its body and key: dictionary slot, queue slot, metadata and its strings.
    public static var entryOverhead: Int { 512 }

    private let shards: [LockedShard]
    private let budget: Int
    private let purges = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - budget: bytes for bodies, keys and overhead together; 0 keeps nothing.
    ///   - shards: number of locks; nil takes as many as leave 64 MB each, 1…16.
    ///   - policy: what decides who goes; each shard has its own copy. Default GDSF-P: what costs most to make again
    ///     for its bytes and is asked for most stays.
    public init(budget: Int, shards: Int? = nil, policy: any EvictionPolicy = GreedyDualSizeFrequency()) {
        let count = max(1, shards ?? min(16, budget / 64_000_000))
        self.budget = max(0, budget)
        self.shards = (0..<count).map { _ in LockedShard(budget: max(0, budget) / count, policy: policy) }
    }

    /// The entry under `key`; counts a hit or a miss.
    public func entry(for key: String) -> MemoryEntry<Value>? {
        let (key, hash) = Self.hashed(key)
        guard let lease = shard(of: hash).state.withLock({ $0.find(key, hash) }) else { return nil }
        return MemoryEntry(lease)
    }

    /// The entry under `key`, without counting or noting a use.
    public func peek(_ key: String) -> MemoryEntry<Value>? {
        let (key, hash) = Self.hashed(key)
        guard let lease = shard(of: hash).state.withLock({ $0.peek(key, hash) }) else { return nil }
        return MemoryEntry(lease)
    }

    /// A mark to hand to `insert`: a removal after it makes that insertion void.
    public var generation: UInt64 { purges.load(ordering: .acquiring) }

    /// Puts an entry in place of any under the same key, whose uses it takes over, evicting others to make room. The
    /// newcomer itself may be the one to go when everything else is worth more to the policy.
    ///
    /// - Parameters:
    ///   - valueBytes: bytes the value itself takes beside the body, where that is more than a few words.
    ///   - cost: milliseconds that making or fetching it again would take.
    ///   - generation: value of `generation` when the work began; nil skips the check.
    ///   - name: what `remove(named:)` finds it by; several entries may share one. nil: it is found by its key alone.
    /// - Returns: false when it was refused as larger than its shard's budget (counted as refused), went at once
    ///   (counted as evicted), or was dropped because of a removal since `generation`. What was under the key before is
    ///   gone in every case but the last.
    @discardableResult
    public func insert(
        _ value: Value, body: [UInt8], for key: String, valueBytes: Int = 0, cost: Double = 1,
        generation: UInt64? = nil, name: String? = nil
    ) -> Bool {
        let size = body.count + key.utf8.count + valueBytes + Self.entryOverhead
        let (key, hash) = Self.hashed(key)
        let node = MemoryNode(value, body: body)
        return shard(of: hash).state.withLock { state in
            // Checked under the lock: a removal raises the counter before it visits this shard.
            if let generation, generation != purges.load(ordering: .acquiring) { return false }
            return state.insert(key, hash, node, size: size, cost: cost, name: name)
        }
    }

    /// Changes the value kept under `key` and leaves its body: a stored response that was freshened.
    @discardableResult
    public func update(_ key: String, _ change: (inout Value) -> Void) -> Bool {
        let (key, hash) = Self.hashed(key)
        return shard(of: hash).state.withLock { state in
            state.update(key, hash) { node in
                let node = MemoryNode<Value>.own(node)
                var value = node.value
                change(&value)
                return MemoryNode(value, body: node.body)
            }
        }
    }

    /// Removes one entry; false when there was none.
    @discardableResult
    public func remove(_ key: String) -> Bool {
        let (key, hash) = Self.hashed(key)
        return shard(of: hash).state.withLock { $0.remove(key, hash) }
    }

    /// Removes the entries under these keys, and voids insertions begun before.
    /// - Returns: how many there were.
    @discardableResult
    public func remove(_ keys: Set<String>) -> Int {
        purges.add(1, ordering: .acquiringAndReleasing)
        return keys.count { remove($0) }
    }

    /// Removes every entry for which `matches` holds, and voids insertions begun before. Visits all entries.
    /// - Returns: how many there were.
    @discardableResult
    public func remove(where matches: (_ value: Value) -> Bool) -> Int {
        purges.add(1, ordering: .acquiringAndReleasing)
        return shards.reduce(0) { sum, shard in
            sum + shard.state.withLock { $0.remove { matches(MemoryNode<Value>.own($0).value) } }
        }
    }

    /// Removes the entries stored under any of these names, and voids insertions begun before. Visits no others.
    /// - Returns: how many there were.
    @discardableResult
    public func remove(named names: Set<String>) -> Int {
        removed(named: names.map { NameRange($0) }).count
    }

    /// Removes the entries whose name begins with any of these, byte by byte, and voids insertions begun before. Visits
    /// no others.
    /// - Returns: what they were.
    @discardableResult
    func remove(namedIn selection: SourceSelection) -> [MemoryEntry<Value>] {
        removed(named: selection.ranges.map { NameRange(from: Array($0.from.utf8), below: $0.below) })
    }

    private func removed(named names: [NameRange]) -> [MemoryEntry<Value>] {
        purges.add(1, ordering: .acquiringAndReleasing)
        return shards.flatMap { shard in
            shard.state.withLock { state in names.flatMap { state.remove(named: $0) } }.map {
                MemoryEntry(CacheLease(keeping: $0))
            }
        }
    }

    /// Removes everything, and voids insertions begun before.
    public func removeAll() {
        remove { _ in true }
    }

    /// Evicts what is worth least until the entries take at most this share of what they take now. The budget stays:
    /// the store may grow again.
    /// - Returns: bytes given back.
    @discardableResult
    public func reduce(to share: Double) -> Int {
        shards.reduce(0) { sum, shard in sum + shard.state.withLock { $0.reduce(to: share) } }
    }

    /// Sums over all shards; taken shard by shard, so only exact while nothing else runs.
    public var counters: StoreCounters {
        var sum = StoreCounters(budget: budget)
        for shard in shards {
            let part = shard.state.withLock { $0.counters }
            sum.hits += part.hits
            sum.misses += part.misses
            sum.insertions += part.insertions
            sum.evictions += part.evictions
            sum.refused += part.refused
            sum.entries += part.entries
            sum.bytes += part.bytes
        }
        return sum
    }

    private static func hashed(_ text: String) -> (MemoryKey, UInt64) {
        let key = MemoryKey(text)
        return (key, key.indexHash)
    }

    /// By the upper bits of a hash: a shard's table goes by the lower ones.
    private func shard(of hash: UInt64) -> LockedShard {
        shards[Int(truncatingIfNeeded: ((hash >> 32) * UInt64(shards.count)) >> 32)]
    }
}

private final class LockedShard: Sendable {
    let state: Mutex<MemoryShard>
    init(budget: Int, policy: any EvictionPolicy) {
        state = Mutex(MemoryShard(budget: budget, policy: policy))
    }
}
