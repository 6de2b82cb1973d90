/// What keeps a node that was handed out, for as long as anybody has it.
///
/// A look-up is mostly waiting for lines of memory, and to retain a node is to wait for one more. So who looks something
/// up gets one of a few objects that lie near, which stands for the node while the index has it; when it goes from there,
/// or the object's turn comes again while somebody still has it, that object retains the node itself.
///
/// @unchecked Sendable because what changes is touched by `CacheLeases` alone, under its owner's lock, and while somebody
/// else has it `node` does not change.
final class CacheLease: @unchecked Sendable {
    /// For `withExtendedLifetime` of this object only.
    fileprivate(set) var node: Unmanaged<CacheNode>?
    private var kept: CacheNode?

    fileprivate init() {}

    /// One that has the node for itself.
    init(keeping node: CacheNode) {
        self.node = .passUnretained(node)
        kept = node
    }

    fileprivate func keep() {
        if kept == nil { kept = node?.takeUnretainedValue() }
    }

    fileprivate func stand(for node: Unmanaged<CacheNode>) {
        self.node = node
        if kept != nil { kept = nil }
    }
}

/// The leases of one index, taken in turn.
struct CacheLeases: ~Copyable, Sendable {
    private static let count = 8

    private var leases = InlineArray<8, CacheLease> { _ in CacheLease() }
    /// What they stand for, to be compared without a look at them.
    private nonisolated(unsafe) var nodes = InlineArray<8, UnsafeRawPointer?>(repeating: nil)
    private var last = 0

    /// The next lease, which nobody else has; it stands for what it stood for before until `stand` follows.
    ///
    /// Nothing here needs to know the node, so that its line of memory may be on its way meanwhile.
    mutating func next() -> CacheLease {
        last = (last + 1) % Self.count
        if !isKnownUniquelyReferenced(&leases[last]) {
            leases[last].keep()
            leases[last] = CacheLease()
            nodes[last] = nil
        }
        return leases[last]
    }

    /// Makes the lease given last stand for a node that the index has, until `settle` is called for it.
    mutating func stand(for node: Unmanaged<CacheNode>) {
        leases[last].stand(for: node)
        nodes[last] = UnsafeRawPointer(node.toOpaque())
    }

    /// To be called before the index lets go of a node: who has it keeps it.
    mutating func settle(_ node: Unmanaged<CacheNode>) {
        let address = UnsafeRawPointer(node.toOpaque())
        for at in 0..<Self.count where nodes[at] == address {
            if !isKnownUniquelyReferenced(&leases[at]) {
                leases[at].keep()
                // Theirs alone, so that it goes with them.
                leases[at] = CacheLease()
            }
            nodes[at] = nil
        }
    }

    /// To be called before the index goes with all its nodes.
    func settleAll() {
        for at in 0..<Self.count where nodes[at] != nil { leases[at].keep() }
    }
}
