/// Slots by stored priority, lowest first: a heap with four children per node, so that comparing them touches one CPU
/// cache line and nothing but the heap is written.
///
/// Removing a slot or queueing it again leaves its old element behind. The owner recognises such an element by its
/// stamp, which the owner raises each time it queues a slot, and calls `sweep` when there are too many of them.
struct EvictionQueue: Sendable {
    struct Element: Sendable {
        /// The priority when it was last set here; the slot's current priority is never lower.
        var priority: Double
        var slot: UInt32
        var stamp: UInt32
    }

    private var heap: [Element] = []

    var count: Int { heap.count }
    var first: Element? { heap.first }

    mutating func push(_ element: Element) {
        // Grow by a quarter: `append` alone would double the memory.
        if heap.count == heap.capacity { heap.reserveCapacity(heap.count + heap.count / 4 + 8) }
        heap.append(element)
        siftUp(heap.count - 1, element)
    }

    /// Changes the priority of the first element to one that is not lower.
    mutating func raiseFirst(to priority: Double) {
        var element = heap[0]
        element.priority = priority
        siftDown(0, element)
    }

    mutating func removeFirst() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        siftDown(0, last)
    }

    /// Drops all elements for which `isLive` is false.
    mutating func sweep(keeping isLive: (Element) -> Bool) {
        heap.removeAll { !isLive($0) }
        guard heap.count > 1 else { return }
        for at in stride(from: (heap.count - 2) / 4, through: 0, by: -1) { siftDown(at, heap[at]) }
    }

    private mutating func siftUp(_ start: Int, _ element: Element) {
        var hole = start
        while hole > 0 {
            let parent = (hole - 1) / 4
            if heap[parent].priority <= element.priority { break }
            heap[hole] = heap[parent]
            hole = parent
        }
        heap[hole] = element
    }

    private mutating func siftDown(_ start: Int, _ element: Element) {
        var hole = start
        while true {
            let children = (4 * hole + 1)..<min(4 * hole + 5, max(heap.count, 4 * hole + 1))
            guard var least = children.first else { break }
            for child in children where heap[child].priority < heap[least].priority { least = child }
            if heap[least].priority >= element.priority { break }
            heap[hole] = heap[least]
            hole = least
        }
        heap[hole] = element
    }
}
