/// The directives of `Cache-Control` (RFC 9111 §5.2), including unknown ones.
package struct CacheControl: Sendable, Hashable {
    package struct Directive: Sendable, Hashable {
        /// The name in lowercase (directive names are case-insensitive).
        package var name: String
        /// The argument, unquoted and unescaped, or nil if the directive has no argument.
        package var argument: String?
    }

    /// The value of a directive that takes seconds.
    package enum Seconds: Sendable, Hashable {
        /// The directive is absent.
        case absent
        /// The value is valid. It is at most 2³¹.
        case value(Int)
        /// The value is malformed, or the directive is given twice with different values. Freshness treats it as zero
        /// (RFC 9111 §4.2.1).
        case invalid
    }

    package let directives: [Directive]

    package init(fields: [HeaderField]) {
        var directives: [Directive] = []
        for field in fields where FieldLines.isSameName(field.name, "cache-control") {
            // Most lines contain a single directive.
            if let directive = Self.plain(field.value) {
                directives.append(directive)
            } else {
                directives += Self.parse(field.value)
            }
        }
        self.directives = directives
    }

    /// Creates a value from directives that do not come from `Cache-Control` lines.
    init(directives: [Directive]) { self.directives = directives }

    package func has(_ name: String) -> Bool { directives.contains { $0.name == name } }

    package func seconds(_ name: String) -> Seconds {
        let given = directives.filter { $0.name == name }
        guard let first = given.first else { return .absent }
        guard let value = first.argument.flatMap(FieldLines.deltaSeconds) else { return .invalid }
        let same = given.allSatisfy { $0.argument.flatMap(FieldLines.deltaSeconds) == value }
        return same ? .value(value) : .invalid
    }

    /// Whether `no-cache` forbids reuse of the complete response without validation (RFC 9111 §5.2.2.4).
    package var forbidsReuse: Bool { lists("no-cache").isWhole }

    /// The field names listed by `no-cache`, in lowercase. These fields need validation before reuse, unlike the rest
    /// of the response (RFC 9111 §5.2.2.4).
    package var fieldsToValidate: Set<String> { lists("no-cache").names }

    /// Whether `private` applies to the complete response (RFC 9111 §5.2.2.7).
    package var isPrivate: Bool { lists("private").isWhole }

    /// The field names listed by `private`, in lowercase. These fields are for a single user, unlike the rest of the
    /// response (RFC 9111 §5.2.2.7).
    package var privateFields: Set<String> { lists("private").names }

    /// Returns the field names that a directive with an optional list covers. The directive covers the complete
    /// response if its argument is absent, empty or malformed, or if it lists a field that this cache depends on.
    private func lists(_ name: String) -> (isWhole: Bool, names: Set<String>) {
        guard has(name) else { return (false, []) }
        var names: Set<String> = []
        for directive in directives where directive.name == name {
            let members = directive.argument.map(FieldLines.members) ?? []
            guard !members.isEmpty, members.allSatisfy(FieldLines.isToken) else { return (true, []) }
            names.formUnion(members.map(FieldLines.lowercased))
        }
        guard names.isDisjoint(with: Self.requiredFields) else { return (true, []) }
        return (false, names)
    }

    /// The fields that are required to evaluate or read a stored response.
    private static let requiredFields: Set<String> = [
        "cache-control", "vary", "age", "date", "expires", "content-encoding", "content-length", "content-type",
    ]

    /// Returns every well-formed value of a directive that takes seconds, in the order received.
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
            // Whitespace around "=" is not allowed (RFC 9110 §5.6.6). It is kept in the argument, which is then not a
            // number.
            let argument = FieldLines.unquoted(bytes[(equals + 1)...]) ?? given
            return Directive(
                name: FieldLines.lowercased(trimmedName),
                argument: FieldLines.isSame(name, trimmedName) ? argument : " " + argument)
        }
    }

    /// Parses a directive that consists of a lowercase name, or of such a name and a number, as nearly all directives
    /// do. Returns nil if the directive has a different form.
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
