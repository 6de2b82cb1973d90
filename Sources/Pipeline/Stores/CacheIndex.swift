/// Entries under keys within a budget of bytes: what is kept, in which order it goes, and what has gone.
///
/// A table of cells by key, a queue of their slots by stored priority, which a use leaves alone (`EvictionPolicy`), the
/// ghost ring, and the names that entries may be removed by. Bookkeeping takes at most 200 bytes an entry beside what a
/// subclass of `CacheNode` adds and what names keep elsewhere. Has no lock.
struct CacheIndex<Key: CacheIndexKey>: ~Copyable, Sendable {
    private var cells = CacheCells<Key>()
    private var queue = EvictionQueue()
    private var ghosts = GhostRing()
    private var names = NameOrder()
    private var policy: any EvictionPolicy
    private var calls = 0.0

    /// Bytes the entries may take together; never exceeded when a call returns.
    private(set) var budget: Int
    /// Bytes the entries take.
    private(set) var bytes = 0
    /// Entries that went to make room, newcomers that did not stay included.
    private(set) var evictions = 0
    /// Entries held.
    var count: Int { cells.count }

    init(budget: Int, policy: any EvictionPolicy) {
        self.budget = max(0, budget)
        self.policy = policy
    }

    /// Bytes of bookkeeping as allocated now.
    var bookkeeping: Int { cells.memory + queue.memory + ghosts.memory + names.memory }

    // MARK: Looking up

    /// The entry under `key`; notes a use.
    ///
    /// - Parameter hash: the key's, where it is known already; so in all calls.
    mutating func use(_ key: Key, hash: UInt64? = nil) -> CacheLease? {
        guard let (at, lease) = lease(key, hash ?? key.indexHash) else { return nil }
        calls += 1
        policy.touch(&cells[at].entry, uses: 1, now: calls)
        return lease
    }

    /// The entry under `key`, without noting a use.
    mutating func peek(_ key: Key, hash: UInt64? = nil) -> CacheLease? {
        lease(key, hash ?? key.indexHash)?.lease
    }

    /// What the policy knows of the entry under `key`.
    func entry(of key: Key) -> EvictionEntry? { find(key, key.indexHash).map { cells[$0].entry } }

    // MARK: Changing

    /// Puts another node under a key; false when there is none. What the policy knows stays, the size that was charged
    /// included.
    mutating func update(_ key: Key, hash: UInt64? = nil, _ change: (CacheNode) -> CacheNode) -> Bool {
        guard let at = find(key, hash ?? key.indexHash) else { return false }
        cells.replace(at, with: change(cells.node(at)))
        return true
    }

    /// Takes in an entry in place of any under its key, whose uses go over to it, and evicts what exceeds the budget.
    ///
    /// - Parameter name: what `remove(named:)` finds it by.
    /// - Returns: whether it stays: false when it is larger than the whole budget, which evicts nobody, and when it is
    ///   worth less than all that is there. What was under the key is gone in either case.
    mutating func insert(
        _ key: Key, _ node: CacheNode, hash known: UInt64? = nil, size: Int, cost: Double, name: String? = nil
    ) -> Bool {
        let hash = known ?? key.indexHash
        let before = find(key, hash)
        guard size <= budget else {
            if let before { removeCell(before) }
            return false
        }
        calls += 1
        var entry = EvictionEntry(size: max(1, size), cost: cost)
        policy.admit(&entry, wasEvicted: policy.remembersEvicted && ghosts.contains(hash), now: calls)
        let at: Int
        if let before {
            at = before
            entry.uses = max(entry.uses, cells[at].entry.uses)
            bytes -= cells[at].size
            if cells[at].isNamed { names.remove(cells[at].slot) }
            cells.replace(at, with: node)
        } else {
            at = cells.insert(key, node, hash: UInt32(truncatingIfNeeded: hash))
        }
        let slot = cells[at].slot
        cells[at].entry = entry
        cells[at].isNamed = name != nil
        if let name { names.insert(slot, name) }
        bytes += cells[at].size
        queue.push(.init(priority: policy.priority(of: entry), slot: slot, stamp: cells.place(slot)))
        if before != nil { sweepQueue() }
        var stays = true
        while bytes > budget, let gone = evictOne() { if gone == slot { stays = false } }
        return stays
    }

    /// Removes one entry, which is not remembered as evicted; false when there was none.
    mutating func remove(_ key: Key, hash known: UInt64? = nil) -> Bool {
        guard let at = find(key, known ?? key.indexHash) else { return false }
        removeCell(at)
        return true
    }

    /// Removes the entries with such a name; visits no others.
    /// - Returns: what they were.
    mutating func remove(named range: NameRange) -> [CacheNode] {
        var removed: [CacheNode] = []
        for slot in names.slots(in: range) {
            let at = cells.cell(of: slot)
            removed.append(cells.node(at))
            removeCell(at)
        }
        return removed
    }

    /// Removes every entry for which `matches` holds; visits all.
    /// - Returns: how many there were.
    mutating func remove(where matches: (Key, CacheNode) -> Bool) -> Int {
        let before = count
        for slot in 0..<UInt32(cells.used) where cells.stamp(of: slot) != 0 {
            let at = cells.cell(of: slot)
            if matches(cells[at].key, cells.node(at)) { removeCell(at) }
        }
        return before - count
    }

    /// Sets another budget and evicts what exceeds it.
    mutating func resize(to budget: Int) {
        self.budget = max(0, budget)
        while bytes > self.budget, evictOne() != nil {}
    }

    // MARK: Evicting

    /// Evicts the entry of the lowest priority; those used since they were placed move back first.
    /// - Returns: its slot; nil when there is no entry.
    private mutating func evictOne() -> UInt32? {
        while let front = queue.first {
            guard cells.stamp(of: front.slot) == front.stamp else {
                queue.removeFirst()
                continue
            }
            let at = cells.cell(of: front.slot)
            let entry = cells[at].entry
            let priority = policy.priority(of: entry)
            if priority > front.priority {
                queue.raiseFirst(to: priority)
                continue
            }
            queue.removeFirst()
            policy.evicted(entry)
            evictions += 1
            let hash = cells[at].key.indexHash
            removeCell(at)
            if policy.remembersEvicted { ghosts.append(hash, limit: count) }
            return front.slot
        }
        return nil
    }

    // MARK: Cells

    @inline(__always)
    private func find(_ key: Key, _ hash: UInt64) -> Int? {
        let hash = UInt32(truncatingIfNeeded: hash)
        cells.prefetch(hash)
        return cells.find(key, hash)
    }

    @inline(__always)
    private mutating func lease(_ key: Key, _ hash: UInt64) -> (at: Int, lease: CacheLease)? {
        cells.lease(key, UInt32(truncatingIfNeeded: hash))
    }

    private mutating func removeCell(_ at: Int) {
        if cells[at].isNamed { names.remove(cells[at].slot) }
        bytes -= cells[at].size
        cells.remove(at)
        sweepQueue()
    }

    /// Drops what removed and replaced entries left in the queue once it is a quarter of the entries.
    private mutating func sweepQueue() {
        guard queue.count > count + count / 4 + 16 else { return }
        queue.sweep { cells.stamp(of: $0.slot) == $0.stamp }
    }
}
