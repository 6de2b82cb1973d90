/// What a `MemoryStore` keeps under a key.
public struct MemoryEntry<Value: Sendable>: Sendable {
    /// What is known of the body.
    public var value: Value
    /// Bytes as they were put in.
    public let body: [UInt8]
}
