import HTTPCaching
import PipelineSupport

extension SourceURL {
    /// The network to which limits apply before the host is resolved. It is the /24 or /48 of an address, or the host
    /// name.
    package var network: String {
        AddressPolicy.named(self).first?.network.description ?? (host.isEmpty ? origin : host)
    }

    /// Splits an authority that has no userinfo.
    static func hostAndPort(
        _ authority: Substring, scheme: String, text: String
    ) throws(SourceError) -> (host: String, port: Int) {
        let host: Substring
        var rest: Substring
        let isBracketed = authority.utf8.first == UInt8(ascii: "[")
        if isBracketed {
            guard let end = authority.utf8.firstIndex(of: UInt8(ascii: "]")) else {
                throw SourceError(.malformed, text, "the closing bracket after the IPv6 address is missing")
            }
            host = authority[authority.utf8.index(after: authority.startIndex)..<end]
            rest = authority[authority.utf8.index(after: end)...]
            guard rest.isEmpty || rest.utf8.first == UInt8(ascii: ":") else {
                throw SourceError(.malformed, text, "only a port can follow an address in brackets")
            }
        } else {
            let colon = authority.utf8.firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
            host = authority[..<colon]
            rest = authority[colon...]
        }
        var port = defaultPort(of: scheme)
        if !rest.isEmpty { rest = rest[rest.utf8.index(after: rest.startIndex)...] }
        if !rest.isEmpty {
            guard rest.utf8.count <= 5, rest.utf8.allSatisfy(\.isDigit), let given = Int(rest),
                (1...65_535).contains(given)
            else {
                // The rest may be a password.
                let shown = text.utf8.contains(UInt8(ascii: "@")) ? "the part after the host" : "`\(rest)`"
                throw SourceError(.malformed, text, "\(shown) is not a valid port; expected 1…65535")
            }
            port = given
        }
        if isBracketed {
            guard let address = IPAddress(String(host)), case .v6 = address else {
                throw SourceError(.malformed, text, "`\(host)` is not an IPv6 address")
            }
            return (address.description, port)
        }
        guard !host.isEmpty else { throw SourceError(.malformed, text, "the host is missing") }
        let isName = host.utf8.allSatisfy { $0.isLetterOrDigit || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F }
        let dots = zip(host.utf8, host.utf8.dropFirst()).contains { $0 == 0x2E && $1 == 0x2E }
        guard isName, host.utf8.count <= 253, host.utf8.first != UInt8(ascii: "."), !dots else {
            let isForeign = !host.utf8.allSatisfy { $0 < 0x80 }
            throw SourceError(
                .malformed, text,
                isForeign
                    ? "write a host name with non-ASCII letters in punycode (xn--…)"
                    : "`\(host)` is not a valid host name")
        }
        if isDottedDecimal(host) { return (String(host), port) }
        switch numericAddress(host) {
        case .none: return (FieldLines.lowercased(String(host)), port)
        case .address(let address): return (address.description, port)
        case .malformed:
            throw SourceError(
                .malformed, text, "`\(host)` ends in a number but is not a valid IPv4 address")
        }
    }

    /// Returns whether the string is an IPv4 address in canonical dotted-decimal form.
    private static func isDottedDecimal(_ host: Substring) -> Bool {
        var (dots, digits, value) = (0, 0, 0)
        for byte in host.utf8 {
            if byte == 0x2E, digits > 0 {
                (dots, digits, value) = (dots + 1, 0, 0)
            } else if byte.isDigit, digits == 0 || value > 0 {
                (digits, value) = (digits + 1, value * 10 + Int(byte - 0x30))
                if value > 255 { return false }
            } else {
                return false
            }
        }
        return dots == 3 && digits > 0
    }

    private enum NumericHost {
        case none
        case malformed
        case address(IPAddress)
    }

    /// Interprets a host that ends in a number. Resolvers accept decimal, octal (`0177`), hexadecimal (`0x7f`) and
    /// short (`127.1`, `2130706433`) spellings of IPv4 addresses. All of these are parsed and normalized (URL Standard,
    /// "IPv4 parser", with errors where it only warns). No top-level domain is a number.
    private static func numericAddress(_ host: Substring) -> NumericHost {
        let name = host.utf8.last == UInt8(ascii: ".") ? host.dropLast() : host
        // Every spelling of a number begins with a digit.
        let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")).map { name.utf8.index(after: $0) } ?? name.startIndex
        guard let first = name.utf8[dot...].first, first.isDigit else { return .none }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard let last = parts.last, !last.isEmpty, last.utf8.allSatisfy(\.isDigit) || number(last) != nil else {
            return .none
        }
        guard parts.count <= 4 else { return .malformed }
        var value: UInt64 = 0
        for (index, part) in parts.enumerated() {
            guard let number = number(part) else { return .malformed }
            let isLast = index == parts.count - 1
            // The last number covers all remaining octets.
            let bits = UInt64(isLast ? 8 * (5 - parts.count) : 8)
            guard number < 1 << bits else { return .malformed }
            value = value << bits | number
        }
        return .address(.v4(UInt32(truncatingIfNeeded: value)))
    }

    /// Parses one number of an IPv4 address: hexadecimal after `0x`, octal after `0`, and decimal otherwise. Returns
    /// nil if it is not a number.
    private static func number(_ part: Substring) -> UInt64? {
        let lower = FieldLines.lowercased(String(part))
        guard let first = lower.utf8.first, first.isDigit, lower.utf8.count <= 20 else { return nil }
        if lower.hasPrefix("0x") { return lower.utf8.count == 2 ? 0 : UInt64(lower.dropFirst(2), radix: 16) }
        guard lower.utf8.allSatisfy(\.isDigit) else { return nil }
        return first == UInt8(ascii: "0") && lower.utf8.count > 1 ? UInt64(lower, radix: 8) : UInt64(lower)
    }
}
