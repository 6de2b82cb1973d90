import PipelineSupport

/// A name that entries share, with its hash, so that a search through many shards computes the hash only once.
struct EntryName: Sendable, Hashable {
    private let bytes: ByteString
    private let hash: Int

    init(_ text: String) {
        bytes = ByteString(text)
        hash = bytes.hashValue
    }

    var text: String { bytes.text }

    static func == (a: EntryName, b: EntryName) -> Bool { a.hash == b.hash && a.bytes == b.bytes }
    func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

/// Stores values by key, within a budget in bytes. Decides which values to keep and which to evict, and remembers
/// recent evictions.
///
/// The index stores values in slots, which it finds by key or by name. A queue contains the slots in the order of their
/// stored priority, which an access does not change (`GreedyDualSizeFrequency`). The index also stores ghost entries.
/// It is not synchronized.
struct CacheIndex<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Slot: Sendable {
        var key: Key
        var name: EntryName?
    }

    private var numbers: [Key: UInt32] = [:]
    private var slots: [Slot?] = []
    // These are separate from `slots` because every access reads or changes them.
    private var values: [Value?] = []
    private var entries: [EvictionEntry] = []
    /// The stamp of each slot's valid element in the queue, or 0 if the slot is free.
    private var stamps: [UInt32] = []
    private var free: [UInt32] = []
    private var lastStamp: UInt32 = 0
    private var queue = EvictionQueue()
    private var ghosts = GhostRing()
    private var names: [EntryName: Set<UInt32>] = [:]
    private var policy = GreedyDualSizeFrequency()

    /// The maximum number of bytes for all entries. The budget is never exceeded when a call returns.
    private(set) var budget: Int
    /// The number of bytes that the entries take.
    private(set) var bytes = 0
    /// The number of entries evicted to make room, including new entries that were not kept.
    private(set) var evictions = 0
    /// The number of entries.
    var count: Int { numbers.count }

    init(budget: Int) { self.budget = max(0, budget) }

    // MARK: Looking up

    /// Returns the value under `key`, and counts an access.
    mutating func use(_ key: Key) -> Value? {
        guard let number = numbers[key] else { return nil }
        policy.touch(&entries[Int(number)], uses: 1)
        return values[Int(number)]
    }

    /// Returns the value under `key`, without counting an access.
    func peek(_ key: Key) -> Value? { numbers[key].flatMap { values[Int($0)] } }

    /// Returns the policy's state for the entry under `key`.
    func entry(of key: Key) -> EvictionEntry? { numbers[key].map { entries[Int($0)] } }

    func first(named name: EntryName) -> Value? { names[name]?.first.flatMap { values[Int($0)] } }

    func values(namedWhere matches: (String) -> Bool) -> [Value] {
        names.filter { matches($0.key.text) }.flatMap { $0.value.compactMap { values[Int($0)] } }
    }

    var allValues: [Value] { values.compactMap(\.self) }

    // MARK: Changing

    /// Changes the value under a key. Returns false if the key is not found. The size charged for the entry does not
    /// change.
    mutating func update(_ key: Key, _ change: (inout Value) -> Void) -> Bool {
        guard let number = numbers[key] else { return false }
        change(&values[Int(number)]!)
        return true
    }

    /// Changes the values of all entries with this name and removes the name from them, except for the entry under
    /// `key`.
    mutating func dropName(_ name: EntryName, but key: Key, _ change: (inout Value) -> Void) {
        for number in names[name] ?? [] where slots[Int(number)]!.key != key {
            change(&values[Int(number)]!)
            removeName(of: number)
        }
    }

    /// Inserts a value, replacing the value under the same key but keeping its access count, and evicts entries that
    /// exceed the budget.
    ///
    /// - Parameter name: the name by which `remove(named:)` finds the entry.
    /// - Returns: whether the entry was kept. It is not kept if it is larger than the complete budget, in which case
    ///   nothing is evicted, or if it is worth less than all others. In either case, the previous value under the key
    ///   is removed.
    mutating func insert(_ key: Key, _ value: Value, size: Int, cost: Double, name: EntryName? = nil) -> Bool {
        let before = numbers[key]
        let uses = before.map { entries[Int($0)].uses } ?? 0
        if let before { removeSlot(before) }
        guard size <= budget else { return false }
        var entry = EvictionEntry(size: max(1, size), cost: cost)
        policy.admit(&entry, wasEvicted: ghosts.contains(key.hashValue))
        entry.uses = max(entry.uses, uses)
        lastStamp = max(1, lastStamp &+ 1)
        let slot = Slot(key: key, name: name)
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

    /// Removes one entry without recording an eviction. Returns false if there was no entry.
    mutating func remove(_ key: Key) -> Bool {
        guard let number = numbers[key] else { return false }
        removeSlot(number)
        return true
    }

    /// Removes the entries with this name. Does not visit other entries.
    ///
    /// - Returns: the removed values.
    mutating func remove(named name: EntryName) -> [Value] {
        (names[name] ?? []).map { removeSlot($0).value }
    }

    /// Removes the entries with names for which `matches` returns true. Visits all names.
    ///
    /// - Returns: the removed values.
    mutating func remove(namedWhere matches: (String) -> Bool) -> [Value] {
        names.keys.filter { matches($0.text) }.flatMap { remove(named: $0) }
    }

    /// Removes every entry for which `matches` returns true. Visits all entries.
    ///
    /// - Returns: the number of removed entries.
    mutating func remove(where matches: (Key, Value) -> Bool) -> Int {
        let before = count
        for (number, slot) in slots.enumerated() {
            if let slot, let value = values[number], matches(slot.key, value) { removeSlot(UInt32(number)) }
        }
        return before - count
    }

    /// Changes the budget and evicts entries that exceed it.
    mutating func resize(to budget: Int) {
        self.budget = max(0, budget)
        while bytes > self.budget, evictOne() != nil {}
    }

    // MARK: Evicting

    /// Evicts the entry with the lowest priority. Before that, entries at the front that were accessed since they were
    /// queued move back.
    ///
    /// - Returns: the entry's slot, or nil if there are no entries.
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
            ghosts.append(key.hashValue, limit: count)
            return front.slot
        }
        return nil
    }

    /// Drops stale queue elements, whose slots were removed or queued again, once they make up more than half of the
    /// queue.
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
