/// Work that waits for a slot or a worker: the most urgent first, and of equally urgent work the oldest. Every
/// `oldestEvery`th turn goes to what has waited longest, so that a stream of urgent work starves nothing.
///
/// A value type without a lock, a clock or a bound: its owner brings those. Each call but `update` and `elements` takes
/// at most a multiple of log n steps.
package struct UrgencyQueue<Element> {
    /// How urgent a member is; the least comes first.
    package struct Urgency: Comparable {
        package let priority: UInt8
        package let id: UInt64

        package static func < (left: Self, right: Self) -> Bool {
            left.priority != right.priority ? left.priority > right.priority : left.id < right.id
        }
    }

    private var members: [UInt64: Element] = [:]
    private var byUrgency = IndexedHeap<Urgency>()
    private var byAge = IndexedHeap<UInt64>()
    private let oldestEvery: Int
    private var turn = 0

    /// - Parameter oldestEvery: how often the oldest has its turn: 4 is each fourth. At least 1, which is first in, first
    ///   out.
    package init(oldestEvery: Int) { self.oldestEvery = max(1, oldestEvery) }

    package var count: Int { members.count }
    package var isEmpty: Bool { members.isEmpty }
    /// All members, in no particular order.
    package var elements: some Sequence<Element> { members.values }
    package subscript(id: UInt64) -> Element? { members[id] }
    package var mostUrgent: Urgency? { byUrgency.first?.key }
    package var oldest: UInt64? { byAge.first?.id }

    /// - Parameters:
    ///   - id: the name for the other calls. Names ascend: of two members, the one with the lower name came first.
    ///   - priority: higher is more urgent; the raw value of a `TaskPriority`.
    package mutating func push(_ element: Element, id: UInt64, priority: UInt8) {
        members[id] = element
        byUrgency[id] = Urgency(priority: priority, id: id)
        byAge[id] = id
    }

    /// Removes and returns the next; nil if nothing waits.
    package mutating func pop() -> Element? {
        guard let id = (turn + 1) % oldestEvery == 0 ? oldest : mostUrgent?.id else { return nil }
        turn &+= 1
        return remove(id: id)
    }

    /// Removes what was pushed under an id and returns it; nil if it is not waiting any more.
    package mutating func remove(id: UInt64) -> Element? {
        byUrgency[id] = nil
        byAge[id] = nil
        return members.removeValue(forKey: id)
    }

    /// Moves a member to another queue, with its priority.
    package mutating func move(_ id: UInt64, to other: inout Self) {
        guard let urgency = byUrgency[id], let element = remove(id: id) else { return }
        other.push(element, id: id, priority: urgency.priority)
    }

    /// Changes the elements in place.
    package mutating func update(_ change: (inout Element) -> Void) {
        for id in members.keys { change(&members[id]!) }
    }

    /// Makes what was pushed under an id at least this urgent. Returns false if it is not waiting any more.
    @discardableResult
    package mutating func raise(id: UInt64, to priority: UInt8) -> Bool {
        guard let urgency = byUrgency[id] else { return false }
        if priority > urgency.priority { byUrgency[id] = Urgency(priority: priority, id: id) }
        return true
    }
}
