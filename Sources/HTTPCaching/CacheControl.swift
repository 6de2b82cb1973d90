/// The directives of `Cache-Control` (RFC 9111 §5.2), unknown ones included.
package struct CacheControl: Sendable, Hashable {
    package struct Directive: Sendable, Hashable {
        /// Name in lower case (directive names are case-insensitive).
        package var name: String
        /// Argument without quotes and escapes; nil if there is none.
        package var argument: String?
    }

    /// The value of a directive that takes seconds.
    package enum Seconds: Sendable, Hashable {
        /// The directive is absent.
        case absent
        /// A valid value, at most 2³¹.
        case value(Int)
        /// Present, but malformed or given twice with different values. Freshness counts it as zero (RFC 9111 §4.2.1).
        case invalid
    }

    package let directives: [Directive]

    package init(fields: [HeaderField]) {
        var directives: [Directive] = []
        for field in fields where FieldLines.isSameName(field.name, "cache-control") {
            // Most lines hold one directive.
            if let directive = Self.plain(field.value) {
                directives.append(directive)
            } else {
                directives += Self.parse(field.value)
            }
        }
        self.directives = directives
    }

    /// Creates a set of directives that do not come from `Cache-Control` lines.
    init(directives: [Directive]) { self.directives = directives }

    package func has(_ name: String) -> Bool { directives.contains { $0.name == name } }

    package func seconds(_ name: String) -> Seconds {
        let given = directives.filter { $0.name == name }
        guard let first = given.first else { return .absent }
        guard let value = first.argument.flatMap(FieldLines.deltaSeconds) else { return .invalid }
        let same = given.allSatisfy { $0.argument.flatMap(FieldLines.deltaSeconds) == value }
        return same ? .value(value) : .invalid
    }

    /// Whether `no-cache` forbids reusing the whole response without validation (RFC 9111 §5.2.2.4).
    package var forbidsReuse: Bool { lists("no-cache").isWhole }

    /// The fields `no-cache` names, in lower case: only these need validation before reuse (RFC 9111 §5.2.2.4).
    package var fieldsToValidate: Set<String> { lists("no-cache").names }

    /// Whether `private` applies to the whole response (RFC 9111 §5.2.2.7).
    package var isPrivate: Bool { lists("private").isWhole }

    /// The fields `private` names, in lower case: only these are for a single user (RFC 9111 §5.2.2.7).
    package var privateFields: Set<String> { lists("private").names }

    /// What a directive with an optional list of field names covers. Without an argument, or with an empty or malformed
    /// one, it covers the whole response; so does a list that names a field this cache itself depends on.
    private func lists(_ name: String) -> (isWhole: Bool, names: Set<String>) {
        guard has(name) else { return (false, []) }
        var names: Set<String> = []
        for directive in directives where directive.name == name {
            let members = directive.argument.map(FieldLines.members) ?? []
            guard !members.isEmpty, members.allSatisfy(FieldLines.isToken) else { return (true, []) }
            names.formUnion(members.map(FieldLines.lowercased))
        }
        guard names.isDisjoint(with: Self.needed) else { return (true, []) }
        return (false, names)
    }

    /// Fields without which a stored response cannot be evaluated or read.
    private static let needed: Set<String> = [
        "cache-control", "vary", "age", "date", "expires", "content-encoding", "content-length", "content-type",
    ]

    /// Every well-formed value of a directive that takes seconds, in the order received.
    func validSeconds(_ name: String) -> [Int] {
        directives.compactMap { $0.name == name ? $0.argument.flatMap(FieldLines.deltaSeconds) : nil }
    }

    private static func parse(_ line: String) -> [Directive] {
        FieldLines.members(of: line).map { member in
            if let directive = plain(member) { return directive }
            let bytes = Array(member.utf8)
            guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")) else {
                return Directive(name: FieldLines.lowercased(member), argument: nil)
            }
            let name = String(decoding: bytes[..<equals], as: UTF8.self)
            let trimmedName = FieldLines.trimmed(name)
            let given = String(decoding: bytes[(equals + 1)...], as: UTF8.self)
            // Space around "=" is not allowed (RFC 9110 §5.6.6); the argument keeps it, and so is not a number.
            let argument = FieldLines.unquoted(bytes[(equals + 1)...]) ?? given
            return Directive(
                name: FieldLines.lowercased(trimmedName),
                argument: FieldLines.isSame(name, trimmedName) ? argument : " " + argument)
        }
    }

    /// A lower-case name, alone or with a number, as nearly all directives are; nil for anything else.
    private static func plain(_ member: String) -> Directive? {
        let bytes = member.utf8
        let end = bytes.firstIndex { !($0 >= 0x61 && $0 <= 0x7A || $0 == 0x2D) } ?? bytes.endIndex
        if end == bytes.startIndex { return nil }
        if end == bytes.endIndex { return Directive(name: member, argument: nil) }
        let digits = bytes[bytes.index(after: end)...]
        guard bytes[end] == UInt8(ascii: "="), !digits.isEmpty, digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 })
        else { return nil }
        return Directive(name: String(member[..<end]), argument: String(Substring(digits)))
    }
}
