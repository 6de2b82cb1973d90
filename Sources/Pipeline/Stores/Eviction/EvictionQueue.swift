/// Slots by stored priority, lowest first: a heap with four children a node, so that comparing them touches one line
/// of the processor's cache and nothing beside the heap is written.
///
/// A slot that goes or is placed anew leaves its former element behind; its owner knows it by the stamp, which it
/// raises for every placing, and calls `sweep` when there are too many of them.
struct EvictionQueue: Sendable {
    struct Element: Sendable {
        /// As of the last time the slot was placed; the true one is never lower.
        var priority: Double
        var slot: UInt32
        var stamp: UInt32
    }

    private var heap: [Element] = []

    var count: Int { heap.count }
    var first: Element? { heap.first }

    mutating func push(_ element: Element) {
        // A quarter more at a time: an append by itself would double what it takes.
        if heap.count == heap.capacity { heap.reserveCapacity(heap.count + heap.count / 4 + 8) }
        heap.append(element)
        siftUp(heap.count - 1, element)
    }

    /// Gives the first element a priority that is not lower.
    mutating func raiseFirst(to priority: Double) {
        var element = heap[0]
        element.priority = priority
        siftDown(0, element)
    }

    mutating func removeFirst() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        siftDown(0, last)
    }

    /// Drops all elements but those `isLive` holds for.
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
