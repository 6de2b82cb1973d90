/// Work that waits for a slot or a worker: the most urgent first; of equally urgent work what the caller ranks lowest; then
/// first in, first out. Every `oldestEvery`th turn goes to what has waited longest, so that a stream of urgent work
/// starves nothing.
///
/// A value type without a lock, a clock or a bound: its owner brings those. `push` and `count` take constant time,
/// the other calls look at all that waits.
package struct UrgencyQueue<Element> {
    private struct Entry {
        var id: UInt64
        var priority: UInt8
        var element: Element
    }

    /// Oldest first.
    private var entries: [Entry] = []
    private let oldestEvery: Int
    private var turn = 0

    /// - Parameter oldestEvery: how often the oldest has its turn: 4 is each fourth. At least 1, which is first in, first
    ///   out.
    package init(oldestEvery: Int) { self.oldestEvery = max(1, oldestEvery) }

    package var count: Int { entries.count }
    package var isEmpty: Bool { entries.isEmpty }
    /// What waits, oldest first.
    package var elements: some Sequence<Element> { entries.lazy.map(\.element) }

    /// - Parameters:
    ///   - id: the name for `remove` and `raise`.
    ///   - priority: higher is more urgent; the raw value of a `TaskPriority`.
    package mutating func push(_ element: Element, id: UInt64, priority: UInt8) {
        entries.append(Entry(id: id, priority: priority, element: element))
    }

    /// Removes and returns the next; nil if nothing waits, or if nothing that waits may begin now.
    ///
    /// - Parameter rank: the order among equally urgent elements, the lowest first; nil if an element may not begin now.
    package mutating func pop(by rank: (Element) -> Int? = { _ in 0 }) -> Element? {
        var best: (index: Int, priority: UInt8, rank: Int)?
        for (index, entry) in entries.enumerated() {
            guard let rank = rank(entry.element) else { continue }
            if let best, (entry.priority, -rank) <= (best.priority, -best.rank) { continue }
            best = (index, entry.priority, rank)
            // What may begin and is the oldest is found first.
            if (turn + 1) % oldestEvery == 0 { break }
        }
        guard let best else { return nil }
        turn &+= 1
        return entries.remove(at: best.index).element
    }

    /// Removes what was pushed under an id and returns it; nil if it is not waiting any more.
    package mutating func remove(id: UInt64) -> Element? {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return nil }
        return entries.remove(at: index).element
    }

    /// Removes the first `limit` elements for which `isWanted` is true, and returns them as a queue of their own, in the
    /// same order and as urgent as they were.
    package mutating func removeFirst(_ limit: Int = .max, where isWanted: (Element) -> Bool) -> Self {
        var taken = Self(oldestEvery: oldestEvery)
        entries.removeAll { entry in
            guard taken.count < limit, isWanted(entry.element) else { return false }
            taken.entries.append(entry)
            return true
        }
        return taken
    }

    /// Changes the elements in place.
    package mutating func update(_ change: (inout Element) -> Void) {
        for index in entries.indices { change(&entries[index].element) }
    }

    /// Makes what was pushed under an id at least this urgent. Returns false if it is not waiting any more.
    @discardableResult
    package mutating func raise(id: UInt64, to priority: UInt8) -> Bool {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return false }
        entries[index].priority = max(entries[index].priority, priority)
        return true
    }
}
