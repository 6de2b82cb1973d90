/// The entries of a `CacheIndex` by number.
///
/// Holds them by hand: reading one in place neither retains nor releases it.
struct CacheSlots<Key: CacheIndexKey>: ~Copyable, Sendable {
    typealias Node = CacheNode<Key>

    // Unmanaged is not Sendable; the nodes are.
    private nonisolated(unsafe) var nodes: [Unmanaged<Node>?] = []
    /// Of the one element of the queue that counts for a slot; 0: the slot is free.
    private var stamps: [UInt32] = []
    private var lastStamp: UInt32 = 0
    private var free: [UInt32] = []

    init() {}

    deinit {
        for node in nodes { node?.release() }
    }

    /// Slots that have been taken at some time: the numbers below this.
    var used: Int { nodes.count }
    /// Bytes of memory as allocated now, nodes included.
    var memory: Int {
        nodes.capacity * 8 + (stamps.capacity + free.capacity) * 4 + (used - free.count) * Node.bytes
    }

    func isTaken(_ at: Int) -> Bool { stamps[at] != 0 }
    func stamp(of at: Int) -> UInt32 { stamps[at] }

    /// What is in a slot that is taken.
    func node(_ at: Int) -> Node { nodes[at].unsafelyUnwrapped.takeUnretainedValue() }

    /// The same, in place.
    @inline(__always)
    func with<Result>(_ at: Int, _ body: (Node) -> Result) -> Result {
        nodes[at].unsafelyUnwrapped._withUnsafeGuaranteedRef(body)
    }

    /// Puts an entry into a slot that is free; `place` has to follow.
    mutating func take(_ node: Node) -> Int {
        let at = free.popLast().map { Int($0) } ?? used
        if at == used {
            nodes.append(nil)
            stamps.append(0)
        }
        nodes[at] = .passRetained(node)
        return at
    }

    /// Puts an entry in the place of the one in a slot that is taken.
    mutating func replace(_ at: Int, with node: Node) {
        nodes[at]?.release()
        nodes[at] = .passRetained(node)
    }

    /// A stamp that no element of the queue has for this slot: it counts for those pushed from now on.
    mutating func place(_ at: Int) -> UInt32 {
        lastStamp = max(1, lastStamp &+ 1)
        stamps[at] = lastStamp
        return lastStamp
    }

    mutating func release(_ at: Int) {
        nodes[at]?.release()
        nodes[at] = nil
        stamps[at] = 0
        free.append(UInt32(at))
    }
}
