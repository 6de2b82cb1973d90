/// What a `MemoryStore` keeps under a key, handed out as it is: a hit copies no value and no body.
public struct MemoryEntry<Value: Sendable>: Sendable {
    private let lease: CacheLease

    /// Of a node of a store of such values.
    init(_ lease: CacheLease) { self.lease = lease }

    /// What is known of the body.
    public var value: Value { with { $0.value } }
    /// Bytes as they were put in; they stay whole for who has them, whatever becomes of the entry.
    public var body: [UInt8] { with { $0.body } }

    private func with<Result>(_ read: (MemoryNode<Value>) -> Result) -> Result {
        withExtendedLifetime(lease) {
            lease.node.unsafelyUnwrapped._withUnsafeGuaranteedRef { read(MemoryNode<Value>.own($0)) }
        }
    }
}

/// A value and a body.
final class MemoryNode<Value: Sendable>: CacheNode, @unchecked Sendable {
    let value: Value
    let body: [UInt8]

    init(_ value: Value, body: [UInt8]) {
        self.value = value
        self.body = body
    }

    /// What a store holds: nobody but itself puts nodes there, and of this class alone.
    static func own(_ node: CacheNode) -> MemoryNode<Value> { unsafeDowncast(node, to: MemoryNode<Value>.self) }
}
