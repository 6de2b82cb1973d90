import PipelineSupport
import Synchronization

/// Stores entries with their bodies in memory, within a budget in bytes.
///
/// The store is synchronous, and any thread may call it. A call blocks only while other calls do their bookkeeping.
/// Keys are distributed over shards with separate locks. Each shard enforces its part of the budget, so the store never
/// exceeds the complete budget.
package final class MemoryStore<Value: Sendable>: Sendable {
    /// The bytes charged for an entry in addition to its body and key. They are for a dictionary slot, a queue slot,
    /// and the metadata with its strings.
    package static var entryOverhead: Int { 512 }

    private let shards: [MemoryShard]
    /// The budget. It is locked while the shards get their parts.
    private let budget: Mutex<Int>
    private let purges: SharedJournal
    private let kinds: PurgeJournal.Kinds

    /// - Parameters:
    ///   - budget: the total number of bytes for bodies, keys and overhead. If 0, nothing is stored.
    ///   - shards: the number of shards, each of which has a lock. If nil, there is one shard per 64 MB, but at least 1
    ///     and at most 16.
    package convenience init(budget: Int, shards: Int? = nil) {
        self.init(budget: budget, shards: shards, purges: SharedJournal(), of: .all)
    }

    /// - Parameters:
    ///   - purges: the journal, shared by stores that are purged together.
    ///   - kinds: the kinds of entries in the store.
    init(budget: Int, shards: Int? = nil, purges: SharedJournal, of kinds: PurgeJournal.Kinds) {
        (self.purges, self.kinds) = (purges, kinds)
        let count = max(1, shards ?? min(16, budget / 64_000_000))
        self.budget = Mutex(max(0, budget))
        self.shards = (0..<count).map { _ in MemoryShard(budget: max(0, budget) / count) }
    }

    /// Returns the entry under `key`, and counts a hit or a miss.
    package func entry(for key: String) -> MemoryEntry<Value>? {
        MemoryShard.shard(of: key, in: shards).find(key, countsMiss: true).map { MemoryEntry($0) }
    }

    /// Returns the entry under `key`. Counts a hit but not a miss. If there is no entry, the caller looks it up again,
    /// and that look-up counts the miss.
    package func entryIfPresent(for key: String) -> MemoryEntry<Value>? {
        MemoryShard.shard(of: key, in: shards).find(key, countsMiss: false).map { MemoryEntry($0) }
    }

    /// Returns the entry under `key`, without counting a hit or an access.
    package func peek(_ key: String) -> MemoryEntry<Value>? {
        MemoryShard.shard(of: key, in: shards).state.withLock { $0.index.peek(ByteString(key)) }.map { MemoryEntry($0) }
    }

    /// Returns the number of accesses that the eviction policy has counted for the entry under `key`, or nil if there is
    /// no entry.
    package func accesses(of key: String) -> Int? {
        MemoryShard.shard(of: key, in: shards).state.withLock { $0.index.entry(of: ByteString(key))?.uses }
            .map { Int($0) }
    }

    /// Returns an entry with this name, without counting a hit or an access. Searches all shards.
    func first(named name: String) -> MemoryEntry<Value>? {
        let name = EntryName(name)
        for shard in shards {
            if let found = shard.state.withLock({ $0.index.first(named: name) }) { return MemoryEntry(found) }
        }
        return nil
    }

    /// The purge generation, which must be passed to `insert`. A purge of the entry's names in the meantime invalidates
    /// the insertion.
    package var generation: PurgeMark { purges.mark }

    /// Invalidates insertions of these entries that have begun but not finished. If `selection` is nil, invalidates the
    /// insertions of all entries.
    func void(_ selection: EntrySelection?) { purges.record(selection, kinds) }

    /// Inserts an entry, replacing the entry with the same key but keeping its access count, and evicts other entries
    /// to make room. The new entry itself is evicted if all others are worth more to the policy.
    ///
    /// - Parameters:
    ///   - valueBytes: the number of bytes that the value takes in addition to the body. Needed only if the value is
    ///     larger than a few words.
    ///   - cost: the milliseconds that rendering or fetching the entry again would take.
    ///   - generation: the value of `generation` when the work began, or nil to skip the check.
    ///   - name: the name by which `remove(named:)` finds the entry. Several entries may share a name. If nil, the
    ///     entry is found by its key only.
    ///   - source: the source. A purge of it invalidates the insertion.
    /// - Returns: false if the entry is larger than its shard's budget (counted as refused), was evicted at once
    ///   (counted as evicted), or was dropped because of a purge of its key, name or source since `generation`. The
    ///   previous entry is removed except in the last case.
    @discardableResult
    package func insert(
        _ value: Value, body: [UInt8], for key: String, valueBytes: Int = 0, cost: Double = 1,
        generation: PurgeMark? = nil, name: String? = nil, source: String? = nil
    ) -> Bool {
        let size = body.count + key.utf8.count + valueBytes + Self.entryOverhead
        let content = MemoryEntry(value: value, body: body).content
        let entryName = name.map(EntryName.init)
        return MemoryShard.shard(of: key, in: shards).state.withLock { state in
            // This is checked under the lock, because a purge increments the counter before it visits this shard.
            let names = [key, name, source].compactMap(\.self)
            if let generation, !purges.isCurrent(names, source: source, kinds, since: generation) { return false }
            if size > state.index.budget { state.refused += 1 } else { state.insertions += 1 }
            return state.index.insert(ByteString(key), content, size: size, cost: cost, name: entryName)
        }
    }

    /// Changes the value under `key` and keeps its body, for example after a stored response was freshened.
    @discardableResult
    package func update(_ key: String, _ change: (inout Value) -> Void) -> Bool {
        MemoryShard.shard(of: key, in: shards).state.withLock {
            $0.index.update(ByteString(key)) { $0 = MemoryEntry($0).changing(change).content }
        }
    }

    /// Changes the values of all entries with this name and removes the name from them, except for the entry under
    /// `key`. Searches all shards.
    func dropName(_ name: String, but key: String, _ change: (inout Value) -> Void) {
        let (name, key) = (EntryName(name), ByteString(key))
        for shard in shards {
            shard.state.withLock {
                $0.index.dropName(name, but: key) { $0 = MemoryEntry($0).changing(change).content }
            }
        }
    }

    /// Removes one entry. Returns false if there was no entry.
    @discardableResult
    package func remove(_ key: String) -> Bool {
        MemoryShard.shard(of: key, in: shards).state.withLock { $0.index.remove(ByteString(key)) }
    }

    /// Removes the entries under these keys, and invalidates insertions under them that have already begun. Returns the
    /// number of removed entries.
    @discardableResult
    package func remove(_ keys: Set<String>) -> Int {
        void(EntrySelection(sources: keys))
        return keys.count { remove($0) }
    }

    /// Removes every entry for which `matches` returns true, and invalidates all insertions that have already begun.
    /// Visits all entries.
    @discardableResult
    package func remove(where matches: (_ value: Value) -> Bool) -> Int {
        void(nil)
        return shards.reduce(0) { sum, shard in
            sum + shard.state.withLock { $0.index.remove { matches(MemoryEntry<Value>($1).value) } }
        }
    }

    /// Removes the entries with any of these names, and invalidates insertions under them that have already begun. Does
    /// not visit other entries.
    @discardableResult
    package func remove(named names: Set<String>) -> Int {
        void(EntrySelection(sources: names))
        let names = names.map(EntryName.init)
        return shards.reduce(0) { sum, shard in
            sum + shard.state.withLock { state in names.reduce(0) { $0 + state.index.remove(named: $1).count } }
        }
    }

    /// Removes the entries with a name in a selection, and invalidates insertions of such sources that have already
    /// begun. Visits all names.
    ///
    /// - Returns: the removed entries.
    @discardableResult
    func remove(namedIn selection: SourceSelection) -> [MemoryEntry<Value>] {
        void(EntrySelection(matching: selection))
        return shards.flatMap { shard in
            shard.state.withLock { $0.index.remove(namedWhere: selection.contains) }.map { MemoryEntry($0) }
        }
    }

    /// Returns the values of entries with a name in a selection. Visits all names.
    func values(namedIn selection: SourceSelection) -> [Value] {
        shards.flatMap { shard in
            shard.state.withLock { $0.index.values(namedWhere: selection.contains) }
                .map { MemoryEntry<Value>($0).value }
        }
    }

    /// Returns the values for which `matches` returns true. Visits all entries, shard by shard. `matches` runs outside
    /// the locks, because look-ups on event loops wait for the locks.
    func values(where matches: (Value) -> Bool) -> [Value] {
        shards.flatMap { shard in
            shard.state.withLock { $0.index.allValues }.map { MemoryEntry<Value>($0).value }.filter(matches)
        }
    }

    /// Removes everything, and invalidates all insertions that have already begun.
    package func removeAll() {
        remove { _ in true }
    }

    /// Evicts the least valuable entries until the others take up at most this fraction of the bytes that all entries
    /// take up now. The budget does not change, so the store may grow again.
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

    /// Changes the budget, and evicts entries that exceed it.
    func resize(to budget: Int) {
        self.budget.withLock { whole in
            whole = max(0, budget)
            for shard in shards { shard.state.withLock { $0.index.resize(to: max(0, budget) / shards.count) } }
        }
    }

    /// The sums over all shards. They are read shard by shard, so they are exact only if no other call runs at the same
    /// time.
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

/// One part of a `MemoryStore`, with a separate lock.
private final class MemoryShard: Sendable {
    struct State: Sendable {
        var index: CacheIndex<ByteString, MemoryContent>
        var hits = 0
        var misses = 0
        var insertions = 0
        var refused = 0
    }

    let state: Mutex<State>

    init(budget: Int) { state = Mutex(State(index: CacheIndex(budget: budget))) }

    func find(_ key: String, countsMiss: Bool) -> MemoryContent? {
        state.withLock { state in
            let found = state.index.use(ByteString(key))
            if found != nil { state.hits += 1 } else if countsMiss { state.misses += 1 }
            return found
        }
    }

    /// Returns the shard for a key, using a multiplicative hash of all its bytes, eight at a time.
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
