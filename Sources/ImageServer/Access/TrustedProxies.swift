package import HTTPCaching
import PipelineFetching

/// The proxies that are trusted to report a client's address: the `server.trustedProxies` setting.
///
/// A proxy appends its client's address to `Forwarded` (RFC 7239) or `X-Forwarded-For`. The client can forge earlier
/// entries, so the list is read from the end, for as long as the address reached so far is trusted.
package struct TrustedProxies: Sendable, Hashable {
    /// No proxies. The client is the peer of the connection.
    package static let none = TrustedProxies()

    private var blocks: [AddressBlock] = []
    /// Whether peers of Unix sockets, which have no address, are trusted.
    private var trustsUnix = false
    /// The strings passed to `init`.
    package private(set) var texts: [String] = []

    /// The maximum number of addresses that are read, from the end.
    private static let limit = 32

    private init() {}

    /// - Parameter texts: Addresses, address blocks (`10.0.0.0/8`), and `unix` for the peers of Unix sockets.
    /// - Throws: a `Malformed` error for the first string that has a different form.
    package init(_ texts: [String]) throws(Malformed) {
        self.texts = texts
        for text in texts {
            if text == "unix" {
                trustsUnix = true
            } else if let block = AddressBlock(text) {
                blocks.append(block)
            } else {
                throw Malformed(text: text)
            }
        }
    }

    package struct Malformed: Error { package let text: String }

    /// Returns the client's address, or nil if it is unknown.
    ///
    /// - Parameters:
    ///   - peer: The address of the connection's peer, or nil if the peer has no address.
    ///   - fields: The request's header fields.
    package func client(peer: String?, fields: [HeaderField]) -> String? {
        let peer = peer.map(IPAddress.plain)
        guard !texts.isEmpty, trusts(peer: peer) else { return peer }
        let forwarded = client(peer, Self.forwarded(fields))
        let listed = client(peer, Self.listed(fields))
        // A proxy maintains one of the two fields. If both are present, one of them came from the client, and the
        // server cannot tell which.
        guard let forwarded, let listed else { return forwarded ?? listed ?? peer }
        return forwarded == listed ? forwarded : peer
    }

    /// Whether a trusted proxy reports that its client used https, in the last value of `Forwarded` or
    /// `X-Forwarded-Proto`. Returns false if the two differ, because a field that the proxy does not maintain may come
    /// from the client.
    package func isSecure(peer: String?, fields: [HeaderField]) -> Bool {
        guard trusts(peer: peer.map(IPAddress.plain)) else { return false }
        let listed = fields.last { FieldLines.isSameName($0.name, "x-forwarded-proto") }
            .map { $0.value.split(separator: ",").last?.trimmingSpace() ?? "" }
        let forwarded = Self.elements(fields).map { $0.first.flatMap { Self.parameter("proto", of: $0) } ?? "" }
        let schemes = [listed, forwarded].compactMap { $0 }.filter { !$0.isEmpty }
        return !schemes.isEmpty && schemes.allSatisfy { FieldLines.isSameName($0, "https") }
    }

    /// Whether the peer of a connection is a trusted proxy.
    ///
    /// - Parameter peer: The peer's address, or nil if the peer has no address.
    package func trusts(peer: String?) -> Bool { peer.map(isTrusted) ?? trustsUnix }

    /// - Parameter hops: The addresses, last one first. An element is nil if its address is hidden or malformed.
    private func client(_ peer: String?, _ hops: [String?]?) -> String? {
        guard let hops else { return nil }
        var client = peer
        for hop in hops.prefix(Self.limit) {
            guard let hop else { break }
            client = hop
            guard isTrusted(hop) else { break }
        }
        return client
    }

    private func isTrusted(_ text: String) -> Bool {
        let addresses = [text, IPAddress.plain(text)].compactMap { IPAddress($0) }
        return blocks.contains { block in addresses.contains(where: block.contains) }
    }

    private static func listed(_ fields: [HeaderField]) -> [String?]? {
        let lines = fields.filter { FieldLines.isSameName($0.name, "x-forwarded-for") }
        guard !lines.isEmpty else { return nil }
        return lines.flatMap { $0.value.split(separator: ",") }.reversed().map { address($0.trimmingSpace()) }
    }

    private static func forwarded(_ fields: [HeaderField]) -> [String?]? {
        elements(fields)?.map { parameter("for", of: $0).flatMap(address) }
    }

    /// Returns the elements of `Forwarded`, last one first, or nil if the request has no such field.
    private static func elements(_ fields: [HeaderField]) -> [String]? {
        let lines = fields.filter { FieldLines.isSameName($0.name, "forwarded") }
        guard !lines.isEmpty else { return nil }
        // If a client leaves a quoted string open, the string would include the entry that the proxy appends.
        guard lines.allSatisfy({ $0.value.utf8.count(where: { $0 == UInt8(ascii: "\"") }).isMultiple(of: 2) }) else {
            return [""]
        }
        return lines.flatMap { split($0.value, at: ",") }.reversed()
    }

    /// Returns a parameter of an element of `Forwarded`, without quotes.
    private static func parameter(_ name: String, of element: String) -> String? {
        for pair in split(element, at: ";") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, FieldLines.isSameName(parts[0].trimmingSpace(), name) else { continue }
            let value = parts[1].trimmingSpace()
            let isQuoted = value.hasPrefix("\"") && value.hasSuffix("\"") && value.utf8.count > 1
            return isQuoted ? String(value.dropFirst().dropLast()) : value
        }
        return nil
    }

    /// Splits a string at separators outside quoted strings.
    private static func split(_ text: String, at separator: Character) -> [String] {
        var parts = [""]
        var isQuoted = false
        for character in text {
            if character == "\"" { isQuoted.toggle() }
            if character == separator, !isQuoted {
                parts.append("")
            } else {
                parts[parts.count - 1].append(character)
            }
        }
        return parts
    }

    /// Returns the normalized address in `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`. Returns nil
    /// if the string has a different form.
    private static func address(_ text: String) -> String? {
        var host = Substring(text)
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            host = text[..<end].dropFirst()
        } else if text.contains("."), !text.contains("::"), let colon = text.firstIndex(of: ":") {
            host = text[..<colon]
        }
        return IPAddress(IPAddress.plain(String(host)))?.description
    }
}
