import Glibc

/// A string that compares and hashes by its bytes.
///
/// Swift strings are equal if they are canonically equivalent: "é" equals "e" with a combining accent, and the letter
/// omega equals the ohm sign. For file systems, and for callers that choose identifiers, these are different names.
/// Keys and names are therefore compared by their bytes.
package struct ByteString: Sendable, Hashable {
    package let text: String

    @inlinable package init(_ text: String) { self.text = text }

    @inlinable package static func == (a: ByteString, b: ByteString) -> Bool {
        a.withBytes { a in
            b.withBytes { b in
                guard a.count == b.count, let first = a.baseAddress, let second = b.baseAddress else {
                    return a.count == b.count
                }
                return memcmp(first, second, a.count) == 0
            }
        }
    }

    @inlinable package func hash(into hasher: inout Hasher) {
        withBytes { hasher.combine(bytes: $0) }
        // UTF-8 never contains this byte. It separates adjacent strings, so that different pairs with the same
        // concatenation hash differently.
        hasher.combine(0xFF as UInt8)
    }

    @inlinable func withBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        text.utf8.withContiguousStorageIfAvailable { body(UnsafeRawBufferPointer($0)) }
            ?? Array(text.utf8).withUnsafeBytes(body)
    }
}
