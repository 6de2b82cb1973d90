package import HTTPCaching
import PipelineFetching

/// Proxies whose word about a client's address counts (setting `server.trustedProxies`).
///
/// A proxy appends the address that it was asked from to `Forwarded` (RFC 7239) or `X-Forwarded-For`. What stands before
/// may be the client's invention, so the list is read from its end, for as long as the address reached so far is
/// trusted.
package struct TrustedProxies: Sendable, Hashable {
    /// None is trusted: a client is the peer of its connection.
    package static let none = TrustedProxies()

    private var blocks: [AddressBlock] = []
    /// Whether the peer of a Unix socket is trusted, which has no address.
    private var trustsUnix = false
    /// As given.
    package private(set) var texts: [String] = []

    /// How many addresses are looked at, from the end.
    private static let limit = 32

    private init() {}

    /// - Parameter texts: addresses, blocks of them (`10.0.0.0/8`), and `unix` for the peers of Unix sockets.
    /// - Throws: `Malformed`, with the first text that is not one of these.
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

    /// The client's address; nil for one that is not known.
    ///
    /// - Parameters:
    ///   - peer: the other end of the connection; nil for one without an address.
    ///   - fields: the request's.
    package func client(peer: String?, fields: [HeaderField]) -> String? {
        let peer = peer.map(IPAddress.plain)
        guard !texts.isEmpty, trusts(peer: peer) else { return peer }
        let forwarded = client(peer, Self.forwarded(fields))
        let listed = client(peer, Self.listed(fields))
        // A proxy maintains one of the two; the other came from the client. Which one is not known if both are there.
        guard let forwarded, let listed else { return forwarded ?? listed ?? peer }
        return forwarded == listed ? forwarded : peer
    }

    /// Whether the other end of a connection is one of these proxies.
    ///
    /// - Parameter peer: its address; nil for one without.
    package func trusts(peer: String?) -> Bool { peer.map(isTrusted) ?? trustsUnix }

    /// - Parameter hops: addresses, the last one first; nil stands for one that is hidden or malformed.
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
        let lines = fields.filter { FieldLines.isSameName($0.name, "forwarded") }
        guard !lines.isEmpty else { return nil }
        // A quotation mark that a client leaves open would take in what the proxy appends.
        guard lines.allSatisfy({ $0.value.utf8.count(where: { $0 == UInt8(ascii: "\"") }).isMultiple(of: 2) }) else {
            return [nil]
        }
        return lines.flatMap { split($0.value, at: ",") }.reversed().map { element in
            for pair in split(element, at: ";") {
                let parts = pair.split(separator: "=", maxSplits: 1)
                guard parts.count == 2, FieldLines.isSameName(parts[0].trimmingSpace(), "for") else { continue }
                let value = parts[1].trimmingSpace()
                let isQuoted = value.hasPrefix("\"") && value.hasSuffix("\"") && value.utf8.count > 1
                return address(isQuoted ? String(value.dropFirst().dropLast()) : value)
            }
            return nil
        }
    }

    /// Splits outside quoted strings.
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

    /// The address of `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`, in one spelling; nil for anything
    /// else.
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
