/// A binary heap that finds its members by number, so that any member can be changed or removed.
///
/// Each call takes O(log n) comparisons. Removed members do not take up memory. The methods are inlinable, so that
/// other modules can specialize them for their own keys.
package struct IndexedHeap<Key: Comparable> {
    @usableFromInline var members: [(id: UInt64, key: Key)] = []
    @usableFromInline var places: [UInt64: Int] = [:]

    @inlinable package init() {}

    @inlinable package var count: Int { members.count }
    @inlinable package var isEmpty: Bool { members.isEmpty }
    /// The member with the smallest key.
    @inlinable package var first: (id: UInt64, key: Key)? { members.first }

    /// The key of a member, or nil if the number is not in the heap. Setting the key adds, moves or removes the member.
    @inlinable package subscript(id: UInt64) -> Key? {
        get { places[id].map { members[$0].key } }
        set {
            switch (places[id], newValue) {
            case (nil, nil): return
            case (nil, let key?):
                members.append((id, key))
                sift(members.count - 1)
            case (let place?, let key?):
                members[place].key = key
                sift(place)
            case (let place?, nil):
                places[id] = nil
                let last = members.removeLast()
                guard place < members.count else { return }
                members[place] = last
                sift(place)
            }
        }
    }

    /// Removes the member with the smallest key and returns its number.
    @inlinable package mutating func popFirst() -> UInt64? {
        guard let id = first?.id else { return nil }
        self[id] = nil
        return id
    }

    /// Moves the member at an index toward the root or the leaves until its key is in order.
    @inlinable mutating func sift(_ start: Int) {
        let member = members[start]
        var place = start
        while place > 0, member.key < members[(place - 1) / 2].key {
            put(members[(place - 1) / 2], at: place)
            place = (place - 1) / 2
        }
        while place >= start, 2 * place + 1 < members.count {
            var child = 2 * place + 1
            if child + 1 < members.count, members[child + 1].key < members[child].key { child += 1 }
            guard members[child].key < member.key else { break }
            put(members[child], at: place)
            place = child
        }
        put(member, at: place)
    }

    @inlinable mutating func put(_ member: (id: UInt64, key: Key), at place: Int) {
        members[place] = member
        places[member.id] = place
    }
}

extension IndexedHeap: Sendable where Key: Sendable {}
