import PipelineFetching
import PipelineSupport

/// Percent-encodes strings for use in one path segment.
package enum PercentText {
    /// Returns a string as one path segment. Unreserved characters (RFC 3986 §2.3) and `:` `,` `=` `@`, which a segment
    /// may contain, are kept. Every other byte is percent-encoded.
    package static func segment(_ text: String) -> String { encoded(text, keeping: "-._~:,=@") }

    /// Percent-encodes spaces, controls and bytes beyond ASCII. Bytes that are encoded already stay so.
    static func completed(_ text: String) -> String {
        String(
            decoding: text.utf8.flatMap { $0 > 0x20 && $0 < 0x7F ? [$0] : SourceURL.percentEncoded($0) },
            as: UTF8.self)
    }

    /// Percent-encodes every byte except ASCII letters, digits and the characters in `kept`.
    static func encoded(_ text: String, keeping kept: String) -> String {
        let bytes = text.utf8.flatMap { byte in
            byte.isLetterOrDigit || kept.utf8.contains(byte) ? [byte] : SourceURL.percentEncoded(byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension UInt8 {
    /// Whether the byte may occur in the name of a key or of a base URL.
    var isOfName: Bool { isLetterOrDigit || self == UInt8(ascii: "_") || self == UInt8(ascii: "-") }
}
