extension Array where Element == HeaderField {
    /// Returns the value of every line with this name, in order. Names are case-insensitive (RFC 9110 §5.1).
    package func values(of name: String) -> [String] {
        compactMap { FieldLines.isSameName($0.name, name) ? $0.value : nil }
    }

    package func first(_ name: String) -> String? { first { FieldLines.isSameName($0.name, name) }?.value }

    /// Returns all values with this name, joined with a comma and a space (RFC 9110 §5.3), or nil if no field has the
    /// name.
    package func combined(_ name: String) -> String? {
        let all = values(of: name)
        return all.isEmpty ? nil : all.joined(separator: ", ")
    }

    /// The media types listed in `Content-Type`, in lowercase and without parameters. The array is empty if the field
    /// is absent. An empty line yields an empty string. A response should have one type (RFC 9110 §8.3), but browsers
    /// choose among several.
    package var mediaTypes: [String] {
        values(of: "content-type").flatMap { value in
            let members = FieldLines.members(of: value)
            return (members.isEmpty ? [""] : members).map {
                FieldLines.lowercased(FieldLines.beforeParameters($0))
            }
        }
    }

    /// Returns the end-to-end fields, which may be stored.
    ///
    /// Excludes `Connection` and the fields that it lists, other hop-by-hop fields, and fields for proxies (RFC 9110
    /// §7.6.1, RFC 9111 §3.1). Fields that control caching are kept even if `Connection` lists them. Otherwise,
    /// responses that must not be stored could be stored.
    package func endToEnd() -> [HeaderField] {
        var fields = self
        fields.keepEndToEnd()
        return fields
    }

    package mutating func keepEndToEnd() {
        // `Connection` is itself a hop-by-hop field, so fields without hop-by-hop fields need no change.
        guard contains(where: { FieldLines.isHopByHop($0.name) }) else { return }
        let named = values(of: "connection").flatMap(FieldLines.members).filter { !FieldLines.governsCaching($0) }
        if named.count > 16 {
            let names = Set(named.map(FieldLines.lowercased))
            removeAll { FieldLines.isHopByHop($0.name) || names.contains(FieldLines.lowercased($0.name)) }
        } else {
            removeAll { field in
                FieldLines.isHopByHop(field.name) || named.contains { FieldLines.isSameName($0, field.name) }
            }
        }
    }

    /// Returns the fields, without those named in `names`.
    func dropping(_ names: [String]) -> [HeaderField] {
        filter { field in !names.contains { FieldLines.isSameName($0, field.name) } }
    }
}

/// Parses field values as lists, and compares strings byte by byte. Swift's own comparison treats some different byte
/// sequences as equal.
package enum FieldLines {
    /// The names of hop-by-hop fields, in lowercase.
    package static let hopByHop: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
    ]

    /// An array with these names, which is faster to search, and a bit mask of the lengths of the names.
    private static let hopByHopNames = Array(hopByHop)
    private static let hopByHopLengths: UInt64 = hopByHop.reduce(0) { $0 | 1 << UInt64($1.utf8.count) }

    /// Whether a field controls what a cache may do.
    static func governsCaching(_ name: String) -> Bool {
        ["cache-control", "vary", "expires", "pragma", "age", "date"].contains { isSameName($0, name) }
    }

    static func isHopByHop(_ name: String) -> Bool {
        // The length of the name rules out most fields.
        let length = name.utf8.count
        return length < 64 && hopByHopLengths >> UInt64(length) & 1 == 1
            && hopByHopNames.contains { isSameName($0, name) }
    }

    /// Returns the members of a comma-separated list without surrounding whitespace. Commas inside quotes do not
    /// separate members, and empty members are skipped (RFC 9110 §5.6.1). If a quote is never closed, it and all later
    /// quotes are treated as ordinary characters, so that it does not hide later members.
    package static func members(of value: String) -> [String] {
        // Most values have a single member.
        if !value.isEmpty, value.utf8.allSatisfy({ $0 > 0x2C }) { return [value] }
        var members: [String] = []
        let bytes = Array(value.utf8)
        var start = 0
        var index = 0
        var readsQuotes = true
        while index <= bytes.count {
            if index == bytes.count || bytes[index] == UInt8(ascii: ",") {
                let member = trimmed(bytes[start..<index])
                if !member.isEmpty { members.append(String(decoding: member, as: UTF8.self)) }
                start = index + 1
            } else if readsQuotes, bytes[index] == UInt8(ascii: "\"") {
                if let end = closingQuote(bytes, after: index) { index = end } else { readsQuotes = false }
            }
            index += 1
        }
        return members
    }

    /// Returns the part of a value before its parameters, such as `text/plain` in `text/plain; charset=utf-8`.
    package static func beforeParameters(_ value: String) -> String {
        trimmed(String(Substring(value.utf8.prefix { $0 != UInt8(ascii: ";") })))
    }

    /// Returns the string without leading and trailing spaces and tabs (`OWS`, RFC 9110 §5.6.3).
    package static func trimmed(_ text: String) -> String {
        guard let first = text.utf8.first, let last = text.utf8.last, isSpace(first) || isSpace(last) else {
            return text
        }
        return String(decoding: trimmed(Array(text.utf8)[...]), as: UTF8.self)
    }

    /// Returns a token unchanged, and a quoted string unquoted and unescaped (RFC 9110 §5.6.4). Returns nil if a quote
    /// is not closed, or if text follows it.
    static func unquoted(_ bytes: ArraySlice<UInt8>) -> String? {
        guard bytes.first == UInt8(ascii: "\"") else { return String(decoding: bytes, as: UTF8.self) }
        guard closingQuote(Array(bytes), after: 0) == bytes.count - 1 else { return nil }
        var result: [UInt8] = []
        var isEscaped = false
        for byte in bytes.dropFirst().dropLast() {
            isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
            if !isEscaped { result.append(byte) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Parses `delta-seconds` (RFC 9111 §1.2.2), which consists only of digits. Values are capped at 2³¹. Returns nil
    /// if the string is malformed.
    package static func deltaSeconds(_ text: String) -> Int? {
        guard !text.isEmpty else { return nil }
        var value = 0
        for byte in text.utf8 {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            value = Swift.min(value * 10 + Int(byte - 0x30), 1 << 31)
        }
        return value
    }

    /// Whether the string is a field name (`token`, RFC 9110 §5.6.2).
    package static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
                default: false
                }
            }
    }

    /// Returns the string with ASCII letters in lowercase and all other bytes unchanged.
    package static func lowercased(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 >= 0x41 && $0 <= 0x5A }) else { return text }
        return String(decoding: text.utf8.map(lower), as: UTF8.self)
    }

    /// Whether two names are equal, ignoring the case of ASCII letters.
    package static func isSameName(_ one: String, _ other: String) -> Bool {
        guard one.utf8.count == other.utf8.count else { return false }
        // Most names differ in their first byte. Compare it before obtaining pointers to the bytes.
        guard let first = one.utf8.first, let second = other.utf8.first else { return true }
        guard lower(first) == lower(second) else { return false }
        let isSame = one.utf8.withContiguousStorageIfAvailable { one in
            other.utf8.withContiguousStorageIfAvailable { other in
                for index in one.indices where one[index] != other[index] {
                    if lower(one[index]) != lower(other[index]) { return false }
                }
                return true
            }
        }
        return (isSame ?? nil) ?? zip(one.utf8, other.utf8).allSatisfy { lower($0) == lower($1) }
    }

    /// Whether two values have the same bytes.
    package static func isSame(_ one: String, _ other: String) -> Bool { one.utf8.elementsEqual(other.utf8) }

    private static func lower(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func closingQuote(_ bytes: [UInt8], after start: Int) -> Int? {
        var index = start + 1
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "\\") {
                index += 1
            } else if bytes[index] == UInt8(ascii: "\"") {
                return index
            }
            index += 1
        }
        return nil
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var slice = bytes
        while let first = slice.first, isSpace(first) { slice.removeFirst() }
        while let last = slice.last, isSpace(last) { slice.removeLast() }
        return slice
    }
}
