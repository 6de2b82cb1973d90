import PipelineSupport
import Synchronization

/// Keeps entries with their bodies in memory, within a budget of bytes.
///
/// Synchronous and safe to call from any thread; no call blocks on more than another call's bookkeeping. Keys are
/// spread over shards with a lock each. Each shard enforces its share of the budget, so the whole never exceeds it.
package final class MemoryStore<Value: Sendable>: Sendable {
    /// Bytes charged for an entry besides its body and key: dictionary slot, queue slot, metadata and its strings.
    package static var entryOverhead: Int { 512 }

    private let shards: [MemoryShard]
    /// Locked while the shards get their shares.
    private let budget: Mutex<Int>
    let purges: PurgeCount

    /// - Parameters:
    ///   - budget: bytes for bodies, keys and overhead together; 0 keeps nothing.
    ///   - shards: the number of shards, each with a lock; nil for one per 64 MB, 1…16.
    ///   - policy: decides which entries are evicted; each shard has its own copy. The default, GDSF-P, keeps the
    ///     entries that cost most to make again per byte and are accessed most.
    package convenience init(
        budget: Int, shards: Int? = nil, policy: any EvictionPolicy = GreedyDualSizeFrequency()
    ) {
        self.init(budget: budget, shards: shards, policy: policy, purges: PurgeCount())
    }

    /// - Parameter purges: shared with stores that are purged together.
    init(
        budget: Int, shards: Int? = nil, policy: any EvictionPolicy = GreedyDualSizeFrequency(), purges: PurgeCount
    ) {
        self.purges = purges
        let count = max(1, shards ?? min(16, budget / 64_000_000))
        self.budget = Mutex(max(0, budget))
        self.shards = (0..<count).map { _ in MemoryShard(budget: max(0, budget) / count, policy: policy) }
    }

    /// The entry under `key`; counts a hit or a miss.
    package func entry(for key: String) -> MemoryEntry<Value>? {
        MemoryShard.shard(of: key, in: shards).find(key, countsMiss: true).map { MemoryEntry($0) }
    }

    /// The entry under `key`. Counts a hit but not a miss: the caller then looks up again, which counts it.
    package func entryIfPresent(for key: String) -> MemoryEntry<Value>? {
        MemoryShard.shard(of: key, in: shards).find(key, countsMiss: false).map { MemoryEntry($0) }
    }

    /// The entry under `key`, without counting a hit or an access.
    package func peek(_ key: String) -> MemoryEntry<Value>? {
        MemoryShard.shard(of: key, in: shards).state.withLock { $0.index.peek(ByteString(key)) }.map { MemoryEntry($0) }
    }

    /// An entry stored under this name, without counting a hit or an access. Searches all shards.
    func first(named name: String) -> MemoryEntry<Value>? {
        for shard in shards {
            if let found = shard.state.withLock({ $0.index.first(named: name) }) { return MemoryEntry(found) }
        }
        return nil
    }

    /// The purge generation, to be passed to `insert`: a purge of its names in between makes the insertion void.
    package var generation: UInt64 { purges.generation }

    /// Inserts an entry in place of any under the same key, keeping its access count, and evicts others to make room.
    /// The new entry itself is evicted if the policy values everything else more.
    ///
    /// - Parameters:
    ///   - valueBytes: bytes that the value takes in addition to the body, if that is more than a few words.
    ///   - cost: milliseconds that making or fetching it again would take.
    ///   - generation: value of `generation` when the work began; nil skips the check.
    ///   - name: the name by which `remove(named:)` finds it; several entries may share one. nil: it is found by its
    ///     key only.
    ///   - source: where it came from, whose purge makes the insertion void.
    /// - Returns: false if it was refused as larger than its shard's budget (counted as refused), was evicted at once
    ///   (counted as evicted), or was dropped because of a purge of its key, name or source since `generation`. The
    ///   previous entry is gone in every case but the last.
    @discardableResult
    package func insert(
        _ value: Value, body: [UInt8], for key: String, valueBytes: Int = 0, cost: Double = 1,
        generation: UInt64? = nil, name: String? = nil, source: String? = nil
    ) -> Bool {
        let size = body.count + key.utf8.count + valueBytes + Self.entryOverhead
        let content = MemoryEntry(value: value, body: body).content
        return MemoryShard.shard(of: key, in: shards).state.withLock { state in
            // Checked under the lock: a purge raises the counter before it visits this shard.
            let names = [key, name, source].compactMap(\.self)
            if let generation, !purges.isCurrent(names, source: source, since: generation) { return false }
            if size > state.index.budget { state.refused += 1 } else { state.insertions += 1 }
            return state.index.insert(ByteString(key), content, size: size, cost: cost, name: name)
        }
    }

    /// Changes the value under `key` and keeps its body, for example after a stored response was freshened.
    @discardableResult
    package func update(_ key: String, _ change: (inout Value) -> Void) -> Bool {
        MemoryShard.shard(of: key, in: shards).state.withLock {
            $0.index.update(ByteString(key)) { $0 = MemoryEntry($0).changing(change).content }
        }
    }

    /// Changes the values of all entries with this name, and takes the name from them; but not of the entry under `key`.
    /// Searches all shards.
    func unname(_ name: String, but key: String, _ change: (inout Value) -> Void) {
        for shard in shards {
            shard.state.withLock {
                $0.index.unname(name, but: ByteString(key)) { $0 = MemoryEntry($0).changing(change).content }
            }
        }
    }

    /// Removes one entry; false if there was none.
    @discardableResult
    package func remove(_ key: String) -> Bool {
        MemoryShard.shard(of: key, in: shards).state.withLock { $0.index.remove(ByteString(key)) }
    }

    /// Removes the entries under these keys, and voids insertions under them begun before.
    @discardableResult
    package func remove(_ keys: Set<String>) -> Int {
        purges.begin(keys)
        return keys.count { remove($0) }
    }

    /// Removes every entry for which `matches` holds, and voids all insertions begun before. Visits all entries.
    @discardableResult
    package func remove(where matches: (_ value: Value) -> Bool) -> Int {
        purges.begin(nil)
        return shards.reduce(0) { sum, shard in
            sum + shard.state.withLock { $0.index.remove { matches(MemoryEntry<Value>($1).value) } }
        }
    }

    /// Removes the entries stored under any of these names, and voids insertions under them begun before. Visits no
    /// others.
    @discardableResult
    package func remove(named names: Set<String>) -> Int {
        purges.begin(names)
        return shards.reduce(0) { sum, shard in
            sum + shard.state.withLock { state in names.reduce(0) { $0 + state.index.remove(named: $1).count } }
        }
    }

    /// Removes the entries whose name is in a selection, and voids insertions of such sources begun before. Visits all
    /// names.
    /// - Returns: the entries removed.
    @discardableResult
    func remove(namedIn selection: SourceSelection) -> [MemoryEntry<Value>] {
        purges.begin([], matching: selection)
        return shards.flatMap { shard in
            shard.state.withLock { $0.index.remove(namedWhere: selection.contains) }.map { MemoryEntry($0) }
        }
    }

    /// The values of entries whose name is in a selection. Visits all names.
    func values(namedIn selection: SourceSelection) -> [Value] {
        shards.flatMap { shard in
            shard.state.withLock { $0.index.values(namedWhere: selection.contains) }
                .map { MemoryEntry<Value>($0).value }
        }
    }

    /// The values for which `matches` holds. Visits all entries, shard by shard, and looks at them outside the locks, for
    /// which look-ups on event loops wait.
    func values(where matches: (Value) -> Bool) -> [Value] {
        shards.flatMap { shard in
            shard.state.withLock { $0.index.allValues }.map { MemoryEntry<Value>($0).value }.filter(matches)
        }
    }

    /// Removes everything, and voids all insertions begun before.
    package func removeAll() {
        remove { _ in true }
    }

    /// Evicts the least valuable entries until the others take at most this share of what they all take now. The budget
    /// stays: the store may grow again.
    @discardableResult
    package func reduce(to share: Double) -> Int {
        shards.reduce(0) { sum, shard in
            sum
                + shard.state.withLock { state in
                    let (bytes, budget) = (state.index.bytes, state.index.budget)
                    state.index.resize(to: Int(Double(bytes) * min(max(share, 0), 1)))
                    state.index.resize(to: budget)
                    return bytes - state.index.bytes
                }
        }
    }

    /// Changes the budget, and evicts what exceeds it.
    func resize(to budget: Int) {
        self.budget.withLock { whole in
            whole = max(0, budget)
            for shard in shards { shard.state.withLock { $0.index.resize(to: max(0, budget) / shards.count) } }
        }
    }

    /// Sums over all shards; taken shard by shard, so only exact while nothing else runs.
    package var counters: StoreCounters {
        var sum = StoreCounters(budget: budget.withLock(\.self))
        for shard in shards {
            shard.state.withLock { state in
                sum.hits += state.hits
                sum.misses += state.misses
                sum.insertions += state.insertions
                sum.evictions += state.index.evictions
                sum.refused += state.refused
                sum.entries += state.index.count
                sum.bytes += state.index.bytes
            }
        }
        return sum
    }
}

/// One part of a `MemoryStore`, with a lock of its own.
private final class MemoryShard: Sendable {
    struct State: Sendable {
        var index: CacheIndex<ByteString, MemoryContent>
        var hits = 0
        var misses = 0
        var insertions = 0
        var refused = 0
    }

    let state: Mutex<State>

    init(budget: Int, policy: any EvictionPolicy) {
        state = Mutex(State(index: CacheIndex(budget: budget, policy: policy)))
    }

    func find(_ key: String, countsMiss: Bool) -> MemoryContent? {
        state.withLock { state in
            let found = state.index.use(ByteString(key))
            if found != nil { state.hits += 1 } else if countsMiss { state.misses += 1 }
            return found
        }
    }

    /// The shard of a key, by a multiplicative hash of all its bytes, eight at a time.
    static func shard(of key: String, in shards: [MemoryShard]) -> MemoryShard {
        if shards.count == 1 { return shards[0] }
        let hash = key.utf8.withContiguousStorageIfAvailable { Self.hash(UnsafeRawBufferPointer($0)) }
        return shards[Int((hash ?? 0) % UInt64(shards.count))]
    }

    private static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hash = UInt64(bytes.count)
        var at = 0
        while at < bytes.count {
            var word: UInt64 = 0
            if at + 8 <= bytes.count {
                word = bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            } else {
                for byte in bytes[at...] { word = word << 8 | UInt64(byte) }
            }
            hash = (hash ^ word) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash >> 32
            at += 8
        }
        return hash
    }
}
