import Synchronization

/// An entry of a `MemoryStore`, returned by reference: a hit copies neither value nor body.
package struct MemoryEntry<Value: Sendable>: Sendable {
    let content: MemoryContent

    init(value: Value, body: [UInt8]) { content = TypedContent(value, body) }

    /// - Parameter content: content with a value of this type, the only type that a store keeps.
    init(_ content: MemoryContent) { self.content = content }

    /// The metadata of the body.
    package var value: Value { unsafeDowncast(content, to: TypedContent<Value>.self).value }
    /// The bytes as inserted.
    package var body: [UInt8] { content.body }

    /// Tells this insertion or change from every other, without keeping it.
    package var serial: UInt64 { content.serial }

    /// The same body with a changed value.
    func changing(_ change: (inout Value) -> Void) -> MemoryEntry {
        var value = value
        change(&value)
        return MemoryEntry(value: value, body: body)
    }
}

/// The body of an entry. Shards know only this class, so that their code is the same for all types of values.
class MemoryContent: @unchecked Sendable {
    final let body: [UInt8]
    final let serial = MemoryContent.lastSerial.add(1, ordering: .relaxed).newValue

    private static let lastSerial = Atomic<UInt64>(0)

    fileprivate init(_ body: [UInt8]) { self.body = body }
}

private final class TypedContent<Value: Sendable>: MemoryContent, @unchecked Sendable {
    let value: Value

    init(_ value: Value, _ body: [UInt8]) {
        self.value = value
        super.init(body)
    }
}
