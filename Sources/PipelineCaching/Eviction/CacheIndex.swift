import PipelineSupport

/// Values by key within a budget of bytes: decides which are kept and which are evicted, and remembers recent
/// evictions.
///
/// It has slots with the values, found by key; a queue of the slots by stored priority, which an access does not change
/// (`EvictionPolicy`); ghost entries; and the slots of each name. Not synchronised.
struct CacheIndex<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Slot: Sendable {
        var key: Key
        var name: ByteString?
    }

    private var numbers: [Key: UInt32] = [:]
    private var slots: [Slot?] = []
    // Kept apart from `slots`, since every access reads or changes them.
    private var values: [Value?] = []
    private var entries: [EvictionEntry] = []
    /// The stamp of each slot's valid element in the queue; 0 for a free slot.
    private var stamps: [UInt32] = []
    private var free: [UInt32] = []
    private var lastStamp: UInt32 = 0
    private var queue = EvictionQueue()
    private var ghosts = GhostRing()
    private var names: [ByteString: Set<UInt32>] = [:]
    private var policy: any EvictionPolicy
    private var calls = 0.0

    /// Bytes the entries may take together; never exceeded when a call returns.
    private(set) var budget: Int
    /// Bytes the entries take.
    private(set) var bytes = 0
    /// Entries evicted to make room, including new ones that were not kept.
    private(set) var evictions = 0
    /// Entries held.
    var count: Int { numbers.count }

    init(budget: Int, policy: any EvictionPolicy) {
        self.budget = max(0, budget)
        self.policy = policy
    }

    // MARK: Looking up

    /// The value under `key`; counts an access.
    mutating func use(_ key: Key) -> Value? {
        guard let number = numbers[key] else { return nil }
        calls += 1
        policy.touch(&entries[Int(number)], uses: 1, now: calls)
        return values[Int(number)]
    }

    /// The value under `key`, without counting an access.
    func peek(_ key: Key) -> Value? { numbers[key].flatMap { values[Int($0)] } }

    /// What the policy knows of the entry under `key`.
    func entry(of key: Key) -> EvictionEntry? { numbers[key].map { entries[Int($0)] } }

    func first(named name: String) -> Value? { names[ByteString(name)]?.first.flatMap { values[Int($0)] } }

    func values(namedWhere matches: (String) -> Bool) -> [Value] {
        names.filter { matches($0.key.text) }.flatMap { $0.value.compactMap { values[Int($0)] } }
    }

    var allValues: [Value] { values.compactMap(\.self) }

    // MARK: Changing

    /// Changes the value under a key; false if there is none. The size charged for it stays.
    mutating func update(_ key: Key, _ change: (inout Value) -> Void) -> Bool {
        guard let number = numbers[key] else { return false }
        change(&values[Int(number)]!)
        return true
    }

    /// Changes the values of all entries with this name, and takes the name from them; but not of the entry under `key`.
    mutating func unname(_ name: String, but key: Key, _ change: (inout Value) -> Void) {
        for number in names[ByteString(name)] ?? [] where slots[Int(number)]!.key != key {
            change(&values[Int(number)]!)
            removeName(of: number)
        }
    }

    /// Inserts a value in place of any under its key, keeping its access count, and evicts what exceeds the budget.
    ///
    /// - Parameter name: the name by which `remove(named:)` finds it.
    /// - Returns: whether it was kept: false if it is larger than the whole budget, in which case nothing is evicted,
    ///   or if it is worth less than all others. In either case the value that was under the key is gone.
    mutating func insert(_ key: Key, _ value: Value, size: Int, cost: Double, name: String? = nil) -> Bool {
        let before = numbers[key]
        let uses = before.map { entries[Int($0)].uses } ?? 0
        if let before { removeSlot(before) }
        guard size <= budget else { return false }
        calls += 1
        var entry = EvictionEntry(size: max(1, size), cost: cost)
        policy.admit(&entry, wasEvicted: policy.remembersEvicted && ghosts.contains(key.hashValue), now: calls)
        entry.uses = max(entry.uses, uses)
        lastStamp = max(1, lastStamp &+ 1)
        let slot = Slot(key: key, name: name.map(ByteString.init))
        let number: UInt32
        if let last = free.popLast() {
            number = last
            slots[Int(number)] = slot
            values[Int(number)] = value
            entries[Int(number)] = entry
            stamps[Int(number)] = lastStamp
        } else {
            number = UInt32(slots.count)
            slots.append(slot)
            values.append(value)
            entries.append(entry)
            stamps.append(lastStamp)
        }
        numbers[key] = number
        if let name = slot.name { names[name, default: []].insert(number) }
        bytes += entry.size
        queue.push(.init(priority: policy.priority(of: entry), slot: number, stamp: lastStamp))
        sweepQueue()
        var stays = true
        while bytes > budget, let gone = evictOne() { if gone == number { stays = false } }
        return stays
    }

    /// Removes one entry without remembering it as evicted; false if there was none.
    mutating func remove(_ key: Key) -> Bool {
        guard let number = numbers[key] else { return false }
        removeSlot(number)
        return true
    }

    /// Removes the entries with this name; visits no others.
    ///
    /// - Returns: their values.
    mutating func remove(named name: String) -> [Value] {
        remove(named: ByteString(name))
    }

    private mutating func remove(named name: ByteString) -> [Value] {
        (names[name] ?? []).map { removeSlot($0).value }
    }

    /// Removes the entries with names for which `matches` holds; visits all names.
    ///
    /// - Returns: their values.
    mutating func remove(namedWhere matches: (String) -> Bool) -> [Value] {
        names.keys.filter { matches($0.text) }.flatMap { remove(named: $0) }
    }

    /// Removes every entry for which `matches` holds; visits all.
    ///
    /// - Returns: the number of entries removed.
    mutating func remove(where matches: (Key, Value) -> Bool) -> Int {
        let before = count
        for (number, slot) in slots.enumerated() {
            if let slot, let value = values[number], matches(slot.key, value) { removeSlot(UInt32(number)) }
        }
        return before - count
    }

    /// Changes the budget and evicts what exceeds it.
    mutating func resize(to budget: Int) {
        self.budget = max(0, budget)
        while bytes > self.budget, evictOne() != nil {}
    }

    // MARK: Evicting

    /// Evicts the entry with the lowest priority; entries accessed since they were queued move back first.
    ///
    /// - Returns: its slot; nil if there is no entry.
    private mutating func evictOne() -> UInt32? {
        while let front = queue.first {
            let at = Int(front.slot)
            guard stamps[at] == front.stamp else {
                queue.removeFirst()
                continue
            }
            let priority = policy.priority(of: entries[at])
            if priority > front.priority {
                queue.raiseFirst(to: priority)
                continue
            }
            queue.removeFirst()
            policy.evicted(entries[at])
            evictions += 1
            let key = removeSlot(front.slot).key
            if policy.remembersEvicted { ghosts.append(key.hashValue, limit: count) }
            return front.slot
        }
        return nil
    }

    /// Drops queue elements whose slot was removed or queued again, once they are more than half of the queue.
    private mutating func sweepQueue() {
        guard queue.count > 2 * count + 64 else { return }
        queue.sweep { [stamps] element in stamps[Int(element.slot)] == element.stamp }
    }

    private mutating func removeName(of number: UInt32) {
        guard let name = slots[Int(number)]?.name.take() else { return }
        names[name]?.remove(number)
        if names[name]?.isEmpty == true { names[name] = nil }
    }

    @discardableResult
    private mutating func removeSlot(_ number: UInt32) -> (key: Key, value: Value) {
        removeName(of: number)
        let (slot, value) = (slots[Int(number)]!, values[Int(number)]!)
        slots[Int(number)] = nil
        values[Int(number)] = nil
        stamps[Int(number)] = 0
        free.append(number)
        numbers[slot.key] = nil
        bytes -= entries[Int(number)].size
        return (slot.key, value)
    }
}
