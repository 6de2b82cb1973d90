/// One shard of a `MemoryStore`: slots, a dictionary from key to slot, and a min-heap of slots by stored priority.
///
/// A value type without a lock; the store holds it in a `Mutex`.
struct MemoryShard<Value: Sendable>: Sendable {
    private struct Slot: Sendable {
        var key: String
        var value: Value
        var body: [UInt8]
        var entry: EvictionEntry
        /// As of the last time the slot was moved in the heap; the true one is never lower.
        var priority: Double
        var position: Int
    }

    private var slots: [Slot?] = []
    private var free: [Int] = []
    private var index: [String: Int] = [:]
    private var heap: [Int] = []
    private var policy: any EvictionPolicy
    private var tick = 0.0
    private(set) var counters: StoreCounters

    init(budget: Int, policy: any EvictionPolicy) {
        self.policy = policy
        counters = StoreCounters(budget: budget)
    }

    mutating func find(_ key: String) -> (value: Value, body: [UInt8])? {
        guard let at = index[key], let slot = slots[at] else {
            counters.misses += 1
            return nil
        }
        counters.hits += 1
        tick += 1
        var entry = slot.entry
        policy.touch(&entry, now: tick)
        slots[at]?.entry = entry
        return (slot.value, slot.body)
    }

    func peek(_ key: String) -> (value: Value, body: [UInt8])? {
        guard let at = index[key], let slot = slots[at] else { return nil }
        return (slot.value, slot.body)
    }

    mutating func insert(_ key: String, value: Value, body: [UInt8], size: Int, cost: Double) -> Bool {
        remove(key)
        guard size <= counters.budget else {
            counters.refused += 1
            return false
        }
        while counters.bytes + size > counters.budget { evictOne() }
        tick += 1
        var entry = EvictionEntry(size: size, cost: cost)
        policy.admit(&entry, now: tick)
        let slot = Slot(
            key: key, value: value, body: body, entry: entry, priority: policy.priority(of: entry),
            position: heap.count)
        let at: Int
        if let reused = free.popLast() {
            at = reused
            slots[at] = slot
        } else {
            at = slots.count
            slots.append(slot)
        }
        index[key] = at
        heap.append(at)
        siftUp(heap.count - 1)
        counters.insertions += 1
        counters.entries += 1
        counters.bytes += size
        return true
    }

    mutating func update(_ key: String, _ change: (inout Value) -> Void) -> Bool {
        guard let at = index[key], var value = slots[at]?.value else { return false }
        change(&value)
        slots[at]?.value = value
        return true
    }

    @discardableResult
    mutating func remove(_ key: String) -> Bool {
        guard let at = index[key] else { return false }
        removeSlot(at)
        return true
    }

    mutating func remove(where matches: (String, Value) -> Bool) -> Int {
        let found = slots.indices.filter { at in
            guard let slot = slots[at] else { return false }
            return matches(slot.key, slot.value)
        }
        found.forEach { removeSlot($0) }
        return found.count
    }

    // MARK: Evicting

    private mutating func evictOne() {
        while let at = heap.first, let slot = slots[at] {
            let priority = policy.priority(of: slot.entry)
            if priority > slot.priority {
                slots[at]?.priority = priority
                siftDown(0)
                continue
            }
            policy.evicted(slot.entry)
            counters.evictions += 1
            removeSlot(at)
            return
        }
    }

    private mutating func removeSlot(_ at: Int) {
        guard let slot = slots[at] else { return }
        let position = slot.position
        let last = heap.count - 1
        if position != last { swapHeap(position, last) }
        heap.removeLast()
        if position < heap.count {
            siftDown(position)
            siftUp(position)
        }
        index[slot.key] = nil
        slots[at] = nil
        free.append(at)
        counters.entries -= 1
        counters.bytes -= slot.entry.size
    }

    private func storedPriority(_ position: Int) -> Double { slots[heap[position]]?.priority ?? .infinity }

    private mutating func swapHeap(_ a: Int, _ b: Int) {
        heap.swapAt(a, b)
        slots[heap[a]]?.position = a
        slots[heap[b]]?.position = b
    }

    private mutating func siftUp(_ start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard storedPriority(child) < storedPriority(parent) else { return }
            swapHeap(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                if storedPriority(child) < storedPriority(least) { least = child }
            }
            if least == parent { return }
            swapHeap(parent, least)
            parent = least
        }
    }
}
