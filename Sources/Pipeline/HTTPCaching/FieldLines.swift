extension Array where Element == HeaderField {
    /// The values of every line with this name, in order (RFC 9110 §5.1: names compare without regard to case).
    package func values(of name: String) -> [String] {
        let wanted = name.lowercased()
        return compactMap { $0.name.lowercased() == wanted ? $0.value : nil }
    }

    /// The first value with this name.
    package func first(_ name: String) -> String? {
        let wanted = name.lowercased()
        return first { $0.name.lowercased() == wanted }?.value
    }

    /// All values with this name as one, joined by comma and space (RFC 9110 §5.3); nil when there is none.
    package func combined(_ name: String) -> String? {
        let all = values(of: name)
        return all.isEmpty ? nil : all.joined(separator: ", ")
    }

    /// The fields that go from end to end and may be stored.
    ///
    /// Left out are `Connection` and what it names, the other fields of one connection, and those for a proxy
    /// (RFC 9110 §7.6.1, RFC 9111 §3.1).
    package func endToEnd() -> [HeaderField] {
        var dropped = FieldLines.hopByHop
        for value in values(of: "connection") {
            for member in FieldLines.members(of: value) { dropped.insert(member.lowercased()) }
        }
        return filter { !dropped.contains($0.name.lowercased()) }
    }
}

/// Field values as lists.
package enum FieldLines {
    /// Names that never leave one connection, in lower case.
    package static let hopByHop: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
    ]

    /// The members of a comma-separated list, without the whitespace around them; commas inside quotes do not count and
    /// empty members are skipped (RFC 9110 §5.6.1).
    package static func members(of value: String) -> [String] {
        var members: [String] = []
        var current: [UInt8] = []
        var isQuoted = false
        var isEscaped = false
        func close() {
            let member = trimmed(current)
            if !member.isEmpty { members.append(String(decoding: member, as: UTF8.self)) }
            current.removeAll(keepingCapacity: true)
        }
        for byte in value.utf8 {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if byte == UInt8(ascii: ","), !isQuoted {
                close()
                continue
            }
            current.append(byte)
        }
        close()
        return members
    }

    /// Without the spaces and tabs at both ends (`OWS`, RFC 9110 §5.6.3).
    package static func trimmed(_ text: String) -> String { String(decoding: trimmed(Array(text.utf8)), as: UTF8.self) }

    private static func trimmed(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        var slice = bytes[...]
        while let first = slice.first, first == 0x20 || first == 0x09 { slice.removeFirst() }
        while let last = slice.last, last == 0x20 || last == 0x09 { slice.removeLast() }
        return slice
    }

    /// `delta-seconds` (RFC 9111 §1.2.2): digits alone, anything beyond 2³¹ counts as 2³¹; nil where malformed.
    package static func deltaSeconds(_ text: String) -> Int? {
        guard !text.isEmpty else { return nil }
        var value = 0
        for byte in text.utf8 {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            value = Swift.min(value * 10 + Int(byte - 0x30), 1 << 31)
        }
        return value
    }
}
