/// Slots in the order of their stored priority, lowest first. This is a heap with four children per node, so that a
/// comparison touches one CPU cache line, and only the heap is written.
///
/// Removing a slot or queueing it again leaves its old element in the heap. The owner recognizes such an element by its
/// stamp, which the owner increments each time it queues a slot. The owner calls `sweep` when there are too many old
/// elements.
struct EvictionQueue: Sendable {
    struct Element: Sendable {
        /// The priority that was last set in this queue. The slot's current priority is never lower.
        var priority: Double
        var slot: UInt32
        var stamp: UInt32
    }

    private var heap: [Element] = []

    var count: Int { heap.count }
    var first: Element? { heap.first }

    mutating func push(_ element: Element) {
        // Grow by a quarter, because `append` would double the memory.
        if heap.count == heap.capacity { heap.reserveCapacity(heap.count + heap.count / 4 + 8) }
        heap.append(element)
        siftUp(heap.count - 1, element)
    }

    /// Raises the priority of the first element to `priority`, which must not be lower.
    mutating func raiseFirst(to priority: Double) {
        var element = heap[0]
        element.priority = priority
        siftDown(0, element)
    }

    mutating func removeFirst() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        siftDown(0, last)
    }

    /// Drops all elements for which `isLive` returns false.
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
