/// A queue of work that waits for a slot or a worker. The most urgent work comes first, then the oldest. Every
/// `oldestEvery`th removal takes the oldest work regardless of urgency, so that a stream of urgent work does not starve
/// the rest.
///
/// This is a value type without a lock, a clock or a limit, so the owner must provide these. Each call except `update`
/// and `elements` takes O(log n) steps.
package struct UrgencyQueue<Element> {
    /// The urgency of a member. The member with the smallest value comes first.
    package struct Urgency: Comparable {
        package let priority: UInt8
        package let id: UInt64

        @inlinable init(priority: UInt8, id: UInt64) { (self.priority, self.id) = (priority, id) }

        @inlinable package static func < (left: Self, right: Self) -> Bool {
            left.priority != right.priority ? left.priority > right.priority : left.id < right.id
        }
    }

    @usableFromInline var members: [UInt64: Element] = [:]
    @usableFromInline var byUrgency = IndexedHeap<Urgency>()
    @usableFromInline var byAge = IndexedHeap<UInt64>()
    @usableFromInline let oldestEvery: Int
    @usableFromInline var turn = 0

    /// - Parameter oldestEvery: determines how often the oldest member is removed regardless of its urgency. For
    ///   example, 4 means every fourth removal, and 1, the minimum, means first in, first out.
    @inlinable package init(oldestEvery: Int) { self.oldestEvery = max(1, oldestEvery) }

    @inlinable package var count: Int { members.count }
    @inlinable package var isEmpty: Bool { members.isEmpty }
    /// All members, in no particular order.
    @inlinable package var elements: some Sequence<Element> { members.values }
    @inlinable package subscript(id: UInt64) -> Element? { members[id] }
    @inlinable package var mostUrgent: Urgency? { byUrgency.first?.key }
    @inlinable package var oldest: UInt64? { byAge.first?.id }

    /// - Parameters:
    ///   - id: the number that identifies the member in other calls. A member that is added later must have a higher
    ///     number.
    ///   - priority: the raw value of a `TaskPriority`. A higher value is more urgent.
    @inlinable package mutating func push(_ element: Element, id: UInt64, priority: UInt8) {
        members[id] = element
        byUrgency[id] = Urgency(priority: priority, id: id)
        byAge[id] = id
    }

    /// Removes and returns the next member. Returns nil if the queue is empty.
    @inlinable package mutating func pop() -> Element? {
        guard let id = (turn + 1) % oldestEvery == 0 ? oldest : mostUrgent?.id else { return nil }
        turn &+= 1
        return remove(id: id)
    }

    /// Removes and returns the member with the given number. Returns nil if it is not in the queue any more.
    @inlinable package mutating func remove(id: UInt64) -> Element? {
        byUrgency[id] = nil
        byAge[id] = nil
        return members.removeValue(forKey: id)
    }

    /// Moves a member to a different queue, keeping its priority.
    @inlinable package mutating func move(_ id: UInt64, to other: inout Self) {
        guard let urgency = byUrgency[id], let element = remove(id: id) else { return }
        other.push(element, id: id, priority: urgency.priority)
    }

    /// Changes all elements in place.
    @inlinable package mutating func update(_ change: (inout Element) -> Void) {
        for id in members.keys { change(&members[id]!) }
    }

    /// Raises the priority of a member to at least this value. Returns false if the member is not in the queue any
    /// more.
    @discardableResult
    @inlinable package mutating func raise(id: UInt64, to priority: UInt8) -> Bool {
        guard let urgency = byUrgency[id] else { return false }
        if priority > urgency.priority { byUrgency[id] = Urgency(priority: priority, id: id) }
        return true
    }
}
