/// Values under keys within a budget of bytes: what is kept, in which order it goes, and what has gone.
///
/// A queue of slots by stored priority, which a use leaves alone (`EvictionPolicy`), a table from key to slot, and the
/// ghost ring. Bookkeeping takes at most 200 bytes an entry beside the value and the key's own storage. A value type
/// without a lock.
struct CacheIndex<Key: CacheIndexKey, Value: Sendable>: Sendable {
    private struct Content: Sendable {
        var key: Key
        var value: Value
    }

    private struct Slot: Sendable {
        /// In a free slot `size` is the next free one.
        var entry: EvictionEntry
        /// Of the one element of the queue that counts for this slot.
        var stamp: UInt32
    }

    private var slots: [Slot] = []
    /// Beside `slots`, so that eviction walks through small ones; nil where the slot is free.
    private var contents: [Content?] = []
    private var firstFree = Self.none
    private static var none: Int { .max }
    private var table = SlotTable()
    private var queue = EvictionQueue()
    private var ghosts = GhostRing()
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

    /// Bytes of bookkeeping as allocated now: all but values and what keys keep elsewhere.
    var bookkeeping: Int {
        slots.capacity * MemoryLayout<Slot>.stride + queue.memory + table.memory + ghosts.memory
            + contents.capacity * (MemoryLayout<Content?>.stride - MemoryLayout<Value>.size)
    }

    // MARK: Looking up

    /// The value under `key`; notes a use.
    ///
    /// - Parameter hash: the key's, where it is known already; so in all calls.
    mutating func use(_ key: Key, hash: UInt64? = nil) -> Value? {
        guard let at = find(key, hash ?? key.indexHash) else { return nil }
        calls += 1
        policy.touch(&slots[at].entry, uses: 1, now: calls)
        return contents[at]?.value
    }

    /// The value under `key`, without noting a use.
    func peek(_ key: Key, hash: UInt64? = nil) -> Value? {
        find(key, hash ?? key.indexHash).flatMap { contents[$0]?.value }
    }

    /// What the policy knows of an entry.
    func entry(of key: Key) -> EvictionEntry? { find(key, key.indexHash).map { slots[$0].entry } }

    // MARK: Changing

    /// Changes a value in place; false when there is none. Its size stays as it was charged.
    mutating func update(_ key: Key, hash: UInt64? = nil, _ change: (inout Value) -> Void) -> Bool {
        guard let at = find(key, hash ?? key.indexHash), var content = contents[at] else { return false }
        change(&content.value)
        contents[at] = content
        return true
    }

    /// Takes in a value in place of any under the key, whose uses go over to it, and evicts what exceeds the budget.
    ///
    /// - Returns: whether it stays: false when it is larger than the whole budget, which evicts nobody, and when it is
    ///   worth less than all that is there. What was under the key is gone in either case.
    mutating func insert(_ key: Key, hash known: UInt64? = nil, _ value: Value, size: Int, cost: Double) -> Bool {
        let hash = known ?? key.indexHash
        let before = find(key, hash)
        guard size <= budget else {
            if let before { removeSlot(before, hash) }
            return false
        }
        calls += 1
        var entry = EvictionEntry(size: max(1, size), cost: cost)
        policy.admit(&entry, wasEvicted: policy.remembersEvicted && ghosts.contains(hash), now: calls)
        let at: Int
        if let before {
            at = before
            entry.uses = max(entry.uses, slots[before].entry.uses)
            bytes -= slots[before].entry.size
            slots[before].entry = entry
            contents[before] = Content(key: key, value: value)
            sweepQueue()
        } else {
            at = takeSlot(entry, Content(key: key, value: value))
            count += 1
            table.insert(UInt32(at), hash: UInt32(truncatingIfNeeded: hash))
        }
        bytes += entry.size
        slots[at].stamp &+= 1
        queue.push(.init(priority: policy.priority(of: entry), slot: UInt32(at), stamp: slots[at].stamp))
        var stays = true
        while bytes > budget, let gone = evictOne() { if gone == at { stays = false } }
        return stays
    }

    /// Removes one entry, which is not remembered as evicted; false when there was none.
    mutating func remove(_ key: Key, hash known: UInt64? = nil) -> Bool {
        let hash = known ?? key.indexHash
        guard let at = find(key, hash) else { return false }
        removeSlot(at, hash)
        return true
    }

    /// Removes every entry for which `matches` holds; visits all.
    /// - Returns: how many there were.
    mutating func remove(where matches: (Key, Value) -> Bool) -> Int {
        var removed = 0
        for at in contents.indices {
            guard let content = contents[at], matches(content.key, content.value) else { continue }
            removeSlot(at, content.key.indexHash)
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
            guard slots[at].stamp == front.stamp else {
                queue.removeFirst()
                continue
            }
            let entry = slots[at].entry
            let priority = policy.priority(of: entry)
            if priority > front.priority {
                queue.raiseFirst(to: priority)
                continue
            }
            queue.removeFirst()
            policy.evicted(entry)
            evictions += 1
            guard let key = contents[at]?.key else { return nil }
            let hash = key.indexHash
            removeSlot(at, hash)
            if policy.remembersEvicted { ghosts.append(hash, limit: count) }
            return at
        }
        return nil
    }

    // MARK: Slots

    private func find(_ key: Key, _ hash: UInt64) -> Int? {
        table.find(UInt32(truncatingIfNeeded: hash)) { contents[Int($0)]?.key == key }.map { Int($0) }
    }

    private mutating func takeSlot(_ entry: EvictionEntry, _ content: Content) -> Int {
        guard firstFree != Self.none else {
            slots.append(Slot(entry: entry, stamp: 0))
            contents.append(content)
            return slots.count - 1
        }
        let at = firstFree
        firstFree = slots[at].entry.size
        slots[at].entry = entry
        contents[at] = content
        return at
    }

    private mutating func removeSlot(_ at: Int, _ hash: UInt64) {
        table.remove(UInt32(at), hash: UInt32(truncatingIfNeeded: hash))
        bytes -= slots[at].entry.size
        count -= 1
        contents[at] = nil
        slots[at].stamp &+= 1
        slots[at].entry.size = firstFree
        firstFree = at
        sweepQueue()
    }

    /// Drops what removed and replaced entries left in the queue once it is a quarter of the entries.
    private mutating func sweepQueue() {
        guard queue.count > count + count / 4 + 16 else { return }
        queue.sweep { slots[Int($0.slot)].stamp == $0.stamp }
    }
}
