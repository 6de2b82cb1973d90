/// What fields may hold, and how their bytes become text.
///
/// Bytes beyond ASCII are kept one to a character, as ISO-8859-1 has them (RFC 9110 §5.5 calls them opaque), so that
/// what an origin sent can be sent on byte for byte.
enum FieldSyntax {
    /// A field name (`token`, RFC 9110 §5.6.2).
    static func isToken(_ text: String) -> Bool { FieldLines.isToken(text) }

    /// A field value without what could end its line.
    static func isValue(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }
    }

    /// A character for each byte.
    static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
        var text = ""
        text.unicodeScalars.append(contentsOf: bytes.lazy.map { Unicode.Scalar($0) })
        return text
    }

    /// A URL out of a field, its bytes beyond ASCII percent-encoded one by one, whatever they were meant to be.
    static func percentEncoded(_ text: String) -> String {
        var result: [UInt8] = []
        for byte in bytes(text) {
            if byte < 0x80 { result.append(byte) } else { result += SourceURL.percentEncoded(byte) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The bytes of a text made by `text(_:)`; those of other texts, with characters beyond, in UTF-8.
    static func bytes(_ text: String) -> [UInt8] {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return Array(text.utf8) }
        let bytes = text.unicodeScalars.compactMap { UInt8(exactly: $0.value) }
        return bytes.count == text.unicodeScalars.count ? bytes : Array(text.utf8)
    }
}
