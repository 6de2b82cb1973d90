import Synchronization

/// An entry of a `MemoryStore`. It is a reference, so a hit copies neither value nor body.
package struct MemoryEntry<Value: Sendable>: Sendable {
    let content: MemoryContent

    init(value: Value, body: [UInt8]) { content = TypedContent(value, body) }

    /// - Parameter content: the content. Its value must have this type, which is the only type in a store.
    init(_ content: MemoryContent) { self.content = content }

    /// The metadata of the body.
    package var value: Value { unsafeDowncast(content, to: TypedContent<Value>.self).value }
    /// The bytes as inserted.
    package var body: [UInt8] { content.body }

    /// A number that identifies this insertion or change, without keeping the entry in memory.
    package var serial: UInt64 { content.serial }

    /// Returns an entry with the same body and a changed value.
    func changing(_ change: (inout Value) -> Void) -> MemoryEntry {
        var value = value
        change(&value)
        return MemoryEntry(value: value, body: body)
    }
}

/// The body of an entry. Shards use only this class, so that their code is the same for all value types.
///
/// `@unchecked Sendable` because instances are immutable, which the compiler does not infer for a class with a
/// subclass.
class MemoryContent: @unchecked Sendable {
    final let body: [UInt8]
    final let serial = MemoryContent.lastSerial.add(1, ordering: .relaxed).newValue

    private static let lastSerial = Atomic<UInt64>(0)

    fileprivate init(_ body: [UInt8]) { self.body = body }
}

/// `@unchecked Sendable` because instances are immutable, like those of the superclass.
private final class TypedContent<Value: Sendable>: MemoryContent, @unchecked Sendable {
    let value: Value

    init(_ value: Value, _ body: [UInt8]) {
        self.value = value
        super.init(body)
    }
}
