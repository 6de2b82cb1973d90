/// What a `MemoryStore` keeps under a key, handed out as it is: a hit copies no value and no body.
public struct MemoryEntry<Value: Sendable>: Sendable {
    private let node: MemoryNode<Value>

    init(_ node: MemoryNode<Value>) { self.node = node }

    /// What is known of the body.
    public var value: Value { node.value }
    /// Bytes as they were put in; they stay whole for who has them, whatever becomes of the entry.
    public var body: [UInt8] { node.body }
}

/// An entry of a `MemoryStore`, with what the eviction policy knows of it.
final class MemoryNode<Value: Sendable>: CacheNode<MemoryKey>, @unchecked Sendable {
    let value: Value
    let body: [UInt8]

    init(_ key: MemoryKey, _ value: Value, body: [UInt8]) {
        self.value = value
        self.body = body
        super.init(key)
    }
}
