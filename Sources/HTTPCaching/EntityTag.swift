/// An entity tag (RFC 9110 §8.8.3) from `ETag`, `If-Match`, `If-None-Match` or `If-Range`.
///
/// Tags without quotes are malformed, but some origins send them. They are kept unchanged and treated as weak: they
/// match only the same characters, and never prove that two bodies have the same bytes.
package struct EntityTag: Sendable, CustomStringConvertible {
    /// Whether the tag has the prefix `W/`, or is malformed.
    package let isWeak: Bool
    /// The characters to compare, including the quotes but excluding `W/`.
    package let opaque: String
    package let description: String

    package init(_ text: String) {
        description = text
        let bytes = Array(text.utf8)
        let isMarked = bytes.starts(with: [UInt8(ascii: "W"), UInt8(ascii: "/")])
        let rest = isMarked ? bytes.dropFirst(2) : bytes[...]
        let quote = UInt8(ascii: "\"")
        let isQuoted =
            rest.count >= 2 && rest.first == quote && rest.last == quote
            && rest.dropFirst().dropLast().allSatisfy { $0 == 0x21 || ($0 >= 0x23 && $0 != 0x7F) }
        isWeak = isMarked || !isQuoted
        opaque = isQuoted ? String(decoding: rest, as: UTF8.self) : text
    }

    package init?(of fields: [HeaderField]) {
        guard let text = fields.first("etag"), !text.isEmpty else { return nil }
        self.init(text)
    }

    /// Returns the members of a list of tags. Tags have no escapes: a backslash is an ordinary character, and the next
    /// quote ends a tag.
    package static func list(_ value: String) -> [EntityTag] {
        var tags: [EntityTag] = []
        var current: [UInt8] = []
        var isQuoted = false
        for byte in value.utf8 + [UInt8(ascii: ",")] {
            if byte == UInt8(ascii: ","), !isQuoted {
                let text = FieldLines.trimmed(String(decoding: current, as: UTF8.self))
                if !text.isEmpty { tags.append(EntityTag(text)) }
                current.removeAll(keepingCapacity: true)
                continue
            }
            if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
            current.append(byte)
        }
        return tags
    }

    /// Compares strongly: both tags must be strong and have the same characters (RFC 9110 §8.8.3.2).
    package func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && matchesWeakly(other) }

    /// Compares weakly: the tags must have the same characters (RFC 9110 §8.8.3.2).
    package func matchesWeakly(_ other: EntityTag) -> Bool { FieldLines.isSame(opaque, other.opaque) }
}
