/// What a `MemoryStore` keeps under a key, handed out by reference: a hit copies neither value nor body.
public struct MemoryEntry<Value: Sendable>: Sendable {
    let content: MemoryContent

    init(value: Value, body: [UInt8]) { content = TypedContent(value, body) }

    /// - Parameter content: that of an entry with such a value: a store keeps no others.
    init(_ content: MemoryContent) { self.content = content }

    /// What is known of the body.
    public var value: Value { unsafeDowncast(content, to: TypedContent<Value>.self).value }
    /// Bytes as they were put in.
    public var body: [UInt8] { content.body }

    /// The same body with a changed value.
    func changing(_ change: (inout Value) -> Void) -> MemoryEntry {
        var value = value
        change(&value)
        return MemoryEntry(value: value, body: body)
    }
}

/// The body of an entry. Shards know no more of it, so that their code is the same whatever the values are.
class MemoryContent: @unchecked Sendable {
    final let body: [UInt8]

    fileprivate init(_ body: [UInt8]) { self.body = body }
}

private final class TypedContent<Value: Sendable>: MemoryContent, @unchecked Sendable {
    let value: Value

    init(_ value: Value, _ body: [UInt8]) {
        self.value = value
        super.init(body)
    }
}
