/// Names from one, inclusive, up to another: compared byte by byte.
struct NameRange: Sendable {
    var from: [UInt8]
    var below: [UInt8]

    init(from: [UInt8], below: [UInt8]) {
        self.from = from
        self.below = below
    }

    /// The one name.
    init(_ name: String) {
        from = Array(name.utf8)
        // Nothing lies between a text and the same with a zero after it.
        below = from + [0]
    }
}

/// Slots in the order of their names' bytes, so that those of one name, or of all names that begin alike, are found
/// without a look at the others. Several slots may have one name.
///
/// A treap: a search tree by name whose nodes' ranks, spread evenly by a seeded hash of the slot, fall from the root down.
/// The shape is that of a tree built in random order, whatever order the names come in. 32 bytes a slot.
///
/// Reference: R. Seidel, C. Aragon: Randomized Search Trees. Algorithmica 16 (1996).
struct NameOrder: Sendable {
    private struct Node: Sendable {
        var name: String
        /// The first eight bytes, earlier ones higher: most digests differ there, and need no look at the text.
        var head: UInt64
        var left: UInt32
        var right: UInt32
    }

    private var nodes: [Node] = []
    private var root = Self.none
    private static var none: UInt32 { .max }

    /// Bytes of memory it takes beside the names.
    var memory: Int { nodes.capacity * MemoryLayout<Node>.stride }

    /// Adds a slot that has no name yet.
    mutating func insert(_ slot: UInt32, _ name: String) {
        while nodes.count <= Int(slot) { nodes.append(Node(name: "", head: 0, left: Self.none, right: Self.none)) }
        nodes[Int(slot)] = Node(name: name, head: Self.head(of: name.utf8), left: Self.none, right: Self.none)
        let rank = Self.rank(slot)
        var parent = Self.none
        var isLeft = false
        var at = root
        while at != Self.none, Self.rank(at) >= rank {
            (parent, isLeft) = (at, isBefore(slot, at))
            at = isLeft ? nodes[Int(at)].left : nodes[Int(at)].right
        }
        // What hung here goes below the new node, cut in two along its name.
        (nodes[Int(slot)].left, nodes[Int(slot)].right) = split(at, by: slot)
        hang(slot, under: parent, left: isLeft)
    }

    /// Removes a slot; nothing where it has no name.
    mutating func remove(_ slot: UInt32) {
        var parent = Self.none
        var isLeft = false
        var at = Int(slot) < nodes.count ? root : Self.none
        while at != Self.none, at != slot {
            (parent, isLeft) = (at, isBefore(slot, at))
            at = isLeft ? nodes[Int(at)].left : nodes[Int(at)].right
        }
        guard at == slot else { return }
        hang(joined(nodes[Int(slot)].left, nodes[Int(slot)].right), under: parent, left: isLeft)
        nodes[Int(slot)].name = ""
    }

    /// The slots whose names lie in a range.
    func slots(in range: NameRange) -> [UInt32] {
        var found: [UInt32] = []
        var open = [root]
        while let at = open.popLast() {
            if at == Self.none { continue }
            let node = nodes[Int(at)]
            let isFrom = !node.name.utf8.lexicographicallyPrecedes(range.from)
            let isBelow = node.name.utf8.lexicographicallyPrecedes(range.below)
            if isFrom { open.append(node.left) }
            if isBelow { open.append(node.right) }
            if isFrom, isBelow { found.append(at) }
        }
        return found
    }

    // MARK: The tree

    private static func rank(_ slot: UInt32) -> UInt64 { UInt64(slot).indexHash }

    private static func head(of text: some Collection<UInt8>) -> UInt64 {
        var head: UInt64 = 0
        var shift: UInt64 = 64
        for byte in text.prefix(8) {
            shift -= 8
            head |= UInt64(byte) << shift
        }
        return head
    }

    /// Whether one slot's name comes before another's. Of equal ones that of the higher rank comes first, by the way
    /// trees are cut and joined.
    private func isBefore(_ left: UInt32, _ right: UInt32) -> Bool {
        let (head, other) = (nodes[Int(left)].head, nodes[Int(right)].head)
        if head != other { return head < other }
        return nodes[Int(left)].name.utf8.lexicographicallyPrecedes(nodes[Int(right)].name.utf8)
    }

    private mutating func hang(_ slot: UInt32, under parent: UInt32, left: Bool) {
        if parent == Self.none {
            root = slot
        } else if left {
            nodes[Int(parent)].left = slot
        } else {
            nodes[Int(parent)].right = slot
        }
    }

    /// A tree as two: what comes before a slot's name, and the rest.
    private mutating func split(_ tree: UInt32, by slot: UInt32) -> (before: UInt32, after: UInt32) {
        var roots = (before: Self.none, after: Self.none)
        // Where the next piece of either side hangs.
        var (before, after) = (Self.none, Self.none)
        var at = tree
        while at != Self.none {
            if isBefore(at, slot) {
                if before == Self.none { roots.before = at } else { nodes[Int(before)].right = at }
                before = at
                at = nodes[Int(at)].right
            } else {
                if after == Self.none { roots.after = at } else { nodes[Int(after)].left = at }
                after = at
                at = nodes[Int(at)].left
            }
        }
        if before != Self.none { nodes[Int(before)].right = Self.none }
        if after != Self.none { nodes[Int(after)].left = Self.none }
        return roots
    }

    /// Two trees as one; all of the first comes before all of the second.
    private mutating func joined(_ first: UInt32, _ second: UInt32) -> UInt32 {
        var (left, right) = (first, second)
        var root = Self.none
        var parent = Self.none
        var isLeft = false
        func place(_ at: UInt32, _ nodes: inout [Node]) {
            if parent == Self.none {
                root = at
            } else if isLeft {
                nodes[Int(parent)].left = at
            } else {
                nodes[Int(parent)].right = at
            }
            parent = at
        }
        while left != Self.none, right != Self.none {
            if Self.rank(left) >= Self.rank(right) {
                place(left, &nodes)
                isLeft = false
                left = nodes[Int(left)].right
            } else {
                place(right, &nodes)
                isLeft = true
                right = nodes[Int(right)].left
            }
        }
        place(left == Self.none ? right : left, &nodes)
        return root
    }
}
