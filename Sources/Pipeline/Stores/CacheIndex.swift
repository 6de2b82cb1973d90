/// Entries under keys within a budget of bytes: what is kept, in which order it goes, and what has gone.
///
/// A queue of slots by stored priority, which a use leaves alone (`EvictionPolicy`), a table from key to slot, the ghost
/// ring, and the names that entries may be removed by. Bookkeeping takes at most 200 bytes an entry beside what a
/// subclass of `CacheNode` adds and what keys and names keep elsewhere. Has no lock.
struct CacheIndex<Key: CacheIndexKey>: ~Copyable, Sendable {
    typealias Node = CacheNode<Key>

    private var slots = CacheSlots<Key>()
    private var table = SlotTable()
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
    private(set) var count = 0

    init(budget: Int, policy: any EvictionPolicy) {
        self.budget = max(0, budget)
        self.policy = policy
    }

    /// Bytes of bookkeeping as allocated now.
    var bookkeeping: Int { slots.memory + queue.memory + table.memory + ghosts.memory + names.memory }

    // MARK: Looking up

    /// The entry under `key`; notes a use.
    ///
    /// - Parameter hash: the key's, where it is known already; so in all calls.
    mutating func use(_ key: Key, hash: UInt64? = nil) -> Node? {
        guard let at = find(key, hash ?? key.indexHash) else { return nil }
        calls += 1
        slots.with(at) { policy.touch(&$0.entry, uses: 1, now: calls) }
        return slots.node(at)
    }

    /// The entry under `key`, without noting a use.
    func peek(_ key: Key, hash: UInt64? = nil) -> Node? {
        guard let at = find(key, hash ?? key.indexHash) else { return nil }
        return slots.node(at)
    }

    // MARK: Changing

    /// Puts an entry with the same key in the place of one; false when there is none. What the policy knows goes over to
    /// it, the size that was charged included.
    mutating func update(_ key: Key, hash: UInt64? = nil, _ change: (Node) -> Node) -> Bool {
        guard let at = find(key, hash ?? key.indexHash) else { return false }
        let node = slots.node(at)
        let changed = change(node)
        (changed.entry, changed.isNamed) = (node.entry, node.isNamed)
        slots.replace(at, with: changed)
        return true
    }

    /// Takes in an entry in place of any under its key, whose uses go over to it, and evicts what exceeds the budget.
    ///
    /// - Parameter name: what `remove(named:)` finds it by.
    /// - Returns: whether it stays: false when it is larger than the whole budget, which evicts nobody, and when it is
    ///   worth less than all that is there. What was under the key is gone in either case.
    mutating func insert(_ node: Node, hash known: UInt64? = nil, size: Int, cost: Double, name: String? = nil) -> Bool
    {
        let hash = known ?? node.key.indexHash
        let before = find(node.key, hash)
        guard size <= budget else {
            if let before { removeSlot(before) }
            return false
        }
        calls += 1
        var entry = EvictionEntry(size: max(1, size), cost: cost)
        policy.admit(&entry, wasEvicted: policy.remembersEvicted && ghosts.contains(hash), now: calls)
        let at: Int
        if let before {
            at = before
            let replaced = slots.node(at)
            entry.uses = max(entry.uses, replaced.entry.uses)
            bytes -= replaced.size
            if replaced.isNamed { names.remove(UInt32(at)) }
            slots.replace(at, with: node)
        } else {
            at = slots.take(node)
            count += 1
            table.insert(UInt32(at), hash: UInt32(truncatingIfNeeded: hash))
        }
        node.entry = entry
        node.isNamed = name != nil
        if let name { names.insert(UInt32(at), name) }
        bytes += entry.size
        queue.push(.init(priority: policy.priority(of: entry), slot: UInt32(at), stamp: slots.place(at)))
        if before != nil { sweepQueue() }
        var stays = true
        while bytes > budget, let gone = evictOne() { if gone == at { stays = false } }
        return stays
    }

    /// Removes one entry, which is not remembered as evicted; false when there was none.
    mutating func remove(_ key: Key, hash known: UInt64? = nil) -> Bool {
        guard let at = find(key, known ?? key.indexHash) else { return false }
        removeSlot(at)
        return true
    }

    /// Removes the entries with such a name; visits no others.
    /// - Returns: what they were.
    mutating func remove(named range: NameRange) -> [Node] {
        var removed: [Node] = []
        for slot in names.slots(in: range) {
            removed.append(slots.node(Int(slot)))
            removeSlot(Int(slot))
        }
        return removed
    }

    /// Removes every entry for which `matches` holds; visits all.
    /// - Returns: how many there were.
    mutating func remove(where matches: (Node) -> Bool) -> Int {
        var removed = 0
        for at in 0..<slots.used where slots.isTaken(at) && matches(slots.node(at)) {
            removeSlot(at)
            removed += 1
        }
        return removed
    }

    /// Sets another budget and evicts what exceeds it.
    mutating func resize(to budget: Int) {
        self.budget = max(0, budget)
        while bytes > self.budget, evictOne() != nil {}
    }

    // MARK: Evicting

    /// Evicts the entry of the lowest priority; those used since they were placed move back first.
    /// - Returns: its slot; nil when there is no entry.
    private mutating func evictOne() -> Int? {
        while let front = queue.first {
            let at = Int(front.slot)
            guard slots.stamp(of: at) == front.stamp else {
                queue.removeFirst()
                continue
            }
            let entry = slots.with(at) { $0.entry }
            let priority = policy.priority(of: entry)
            if priority > front.priority {
                queue.raiseFirst(to: priority)
                continue
            }
            queue.removeFirst()
            policy.evicted(entry)
            evictions += 1
            let hash = slots.with(at) { $0.key.indexHash }
            removeSlot(at)
            if policy.remembersEvicted { ghosts.append(hash, limit: count) }
            return at
        }
        return nil
    }

    // MARK: Slots

    @inline(__always)
    private func find(_ key: Key, _ hash: UInt64) -> Int? {
        let found = table.find(UInt32(truncatingIfNeeded: hash)) { at in slots.with(Int(at)) { $0.key == key } }
        return found.map { Int($0) }
    }

    private mutating func removeSlot(_ at: Int) {
        let (hash, size, isNamed) = slots.with(at) { ($0.key.indexHash, $0.size, $0.isNamed) }
        if isNamed { names.remove(UInt32(at)) }
        table.remove(UInt32(at), hash: UInt32(truncatingIfNeeded: hash))
        bytes -= size
        count -= 1
        slots.release(at)
        sweepQueue()
    }

    /// Drops what removed and replaced entries left in the queue once it is a quarter of the entries.
    private mutating func sweepQueue() {
        guard queue.count > count + count / 4 + 16 else { return }
        queue.sweep { slots.stamp(of: Int($0.slot)) == $0.stamp }
    }
}
