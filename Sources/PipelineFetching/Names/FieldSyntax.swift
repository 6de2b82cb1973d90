import HTTPCaching

/// The characters that header fields may contain, and the conversion between bytes and strings.
///
/// Each byte beyond ASCII becomes one character, as in ISO-8859-1 (RFC 9110 §5.5 calls such bytes opaque), so that an
/// origin's value can be forwarded byte for byte.
package enum FieldSyntax {
    /// Returns whether the string is a field name (`token`, RFC 9110 §5.6.2).
    static func isToken(_ text: String) -> Bool { FieldLines.isToken(text) }

    /// Returns whether the string is a field value that cannot end its line.
    static func isValue(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }
    }

    /// Returns a string with one character per byte.
    static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
        var text = ""
        text.unicodeScalars.append(contentsOf: bytes.lazy.map { Unicode.Scalar($0) })
        return text
    }

    /// Percent-encodes each byte beyond ASCII in a URL from a header field, regardless of the original encoding.
    package static func percentEncoded(_ text: String) -> String {
        var result: [UInt8] = []
        for byte in bytes(text) {
            if byte < 0x80 { result.append(byte) } else { result += SourceURL.percentEncoded(byte) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Returns the bytes of a string that `text(_:)` returned. A string with characters beyond ISO-8859-1 becomes
    /// UTF-8.
    static func bytes(_ text: String) -> [UInt8] {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return Array(text.utf8) }
        let bytes = text.unicodeScalars.compactMap { UInt8(exactly: $0.value) }
        return bytes.count == text.unicodeScalars.count ? bytes : Array(text.utf8)
    }
}
