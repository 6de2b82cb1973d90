/// The directives of `Cache-Control` (RFC 9111 §5.2), unknown ones included.
public struct CacheControl: Sendable, Hashable {
    /// One directive: lower-case name; argument unquoted, nil without one.
    public struct Directive: Sendable, Hashable {
        /// Name in lower case (directive names compare without regard to case).
        public var name: String
        /// Argument without quotes and escapes, nil for a directive alone.
        public var argument: String?
    }

    /// What a directive that takes seconds says.
    public enum Seconds: Sendable, Hashable {
        /// The directive is not there.
        case absent
        /// A proper value, at most 2³¹.
        case value(Int)
        /// There, but malformed or given twice with different values. Freshness counts it as zero (RFC 9111 §4.2.1).
        case invalid
    }

    /// All directives in the order received.
    public let directives: [Directive]

    /// Parses every `Cache-Control` line among `fields`.
    public init(fields: [HeaderField]) {
        directives = fields.values(of: "cache-control").flatMap(Self.parse)
    }

    /// Whether a directive is there, with or without argument.
    public func has(_ name: String) -> Bool { directives.contains { $0.name == name } }

    /// The seconds a directive gives.
    public func seconds(_ name: String) -> Seconds {
        let given = directives.filter { $0.name == name }
        guard let first = given.first else { return .absent }
        guard let value = first.argument.flatMap(FieldLines.deltaSeconds) else { return .invalid }
        let same = given.allSatisfy { $0.argument.flatMap(FieldLines.deltaSeconds) == value }
        return same ? .value(value) : .invalid
    }

    /// Every well-formed value of a directive that takes seconds, in the order received.
    func validSeconds(_ name: String) -> [Int] {
        directives.compactMap { $0.name == name ? $0.argument.flatMap(FieldLines.deltaSeconds) : nil }
    }

    private static func parse(_ line: String) -> [Directive] {
        FieldLines.members(of: line).map { member in
            guard let equals = member.firstIndex(of: "=") else {
                return Directive(name: member.lowercased(), argument: nil)
            }
            let name = member[..<equals]
            let rest = member[member.index(after: equals)...]
            // Space around "=" is not allowed (RFC 9110 §5.6.6); the argument keeps it, and so fails as a number.
            let trimmedName = FieldLines.trimmed(String(name))
            let argument = trimmedName.utf8.count == name.utf8.count ? unquoted(rest) : " " + unquoted(rest)
            return Directive(name: trimmedName.lowercased(), argument: argument)
        }
    }

    /// A token as it is, a quoted string without quotes and escapes (RFC 9110 §5.6.4).
    private static func unquoted(_ text: Substring) -> String {
        guard text.utf8.count >= 2, text.first == "\"", text.last == "\"" else { return String(text) }
        var result = ""
        var isEscaped = false
        for character in text.dropFirst().dropLast() {
            if !isEscaped, character == "\\" {
                isEscaped = true
                continue
            }
            isEscaped = false
            result.append(character)
        }
        return result
    }
}
