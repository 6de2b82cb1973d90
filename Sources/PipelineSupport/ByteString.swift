import Glibc

/// A text that equals only a text of the same bytes.
///
/// Swift's strings are equal if they are canonically equivalent: é equals e with a combining accent, and Ω the ohm sign.
/// To file systems and to callers that choose identifiers these are different names, so keys and names are compared by
/// their bytes.
package struct ByteString: Sendable, Hashable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (a: ByteString, b: ByteString) -> Bool {
        a.withBytes { a in
            b.withBytes { b in
                guard a.count == b.count, let first = a.baseAddress, let second = b.baseAddress else {
                    return a.count == b.count
                }
                return memcmp(first, second, a.count) == 0
            }
        }
    }

    package func hash(into hasher: inout Hasher) {
        withBytes { hasher.combine(bytes: $0) }
        // UTF-8 never has this byte, so that two neighbouring texts hash differently from two others that join alike.
        hasher.combine(0xFF as UInt8)
    }

    private func withBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        text.utf8.withContiguousStorageIfAvailable { body(UnsafeRawBufferPointer($0)) }
            ?? Array(text.utf8).withUnsafeBytes(body)
    }
}
