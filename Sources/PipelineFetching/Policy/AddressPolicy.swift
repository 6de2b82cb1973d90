// The addresses that a fetch may connect to. The decision depends on the connected address, not on the name or spelling
// in the URL. An address is refused if it is not globally reachable according to the IANA special-purpose registries
// (RFC 6890). An IPv6 address that embeds such an IPv4 address is also refused, because a translator on the way would
// connect to the IPv4 address.

/// The class of an address: public, or the reason why it is not on the public internet.
package enum AddressClass: String, Sendable, Hashable {
    /// A globally reachable address.
    case `public`
    /// This host: `127.0.0.0/8` and `::1`.
    case loopback
    /// Unspecified: `0.0.0.0/8` and `::`, which connect to this host on many systems.
    case unspecified
    /// Private: RFC 1918, unique local (`fc00::/7`) and the deprecated site-local block (`fec0::/10`).
    case `private`
    /// Link-local: `169.254.0.0/16`, where clouds serve metadata, and `fe80::/10`.
    case linkLocal = "link-local"
    /// Shared by the customers of a carrier: `100.64.0.0/10`.
    case carrierGradeNAT = "carrier-grade NAT"
    /// Multicast: `224.0.0.0/4` and `ff00::/8`.
    case multicast
    /// Documentation, benchmarking, protocol assignments, broadcast and all unassigned addresses.
    case reserved
}

/// Refuses addresses that are not public, unless a rule allows them.
package struct AddressPolicy: Sendable, Hashable {
    package let rule: AddressRule

    package init(_ rule: AddressRule = .publicOnly) { self.rule = rule }

    package func allows(_ address: IPAddress, port: Int) -> Bool {
        if rule.isAll || Self.classify(address) == .public { return true }
        // A rule for an IPv4 block also allows its IPv4-mapped form, which leads to the same connection.
        let plain = Self.mapped(address) ?? address
        return rule.entries.contains { entry in
            (entry.port == nil || entry.port == port)
                && (entry.block.contains(address) || entry.block.contains(plain))
        }
    }

    /// Returns the addresses that a URL names, as a literal or as `localhost`, if none of them may be connected to.
    /// Otherwise, returns an empty array. Other names can be checked only after they are resolved.
    package func refused(_ url: SourceURL) -> [IPAddress] {
        guard url.scheme.hasPrefix("http") else { return [] }
        let named = Self.named(url)
        return named.contains { allows($0, port: url.port) } ? [] : named
    }

    static func named(_ url: SourceURL) -> [IPAddress] {
        let host = url.host.hasPrefix("[") ? String(url.host.dropFirst().dropLast()) : url.host
        // RFC 6761 §6.3: names below `localhost` also mean this host, including absolute names (`localhost.`).
        let name = (host.hasSuffix(".") ? host.dropLast() : host[...]).lowercased()
        let isLocal = name == "localhost" || name.hasSuffix(".localhost")
        return (isLocal ? ["127.0.0.1", "::1"] : [host]).compactMap { IPAddress($0) }
    }

    private static let blocks: [(AddressBlock, AddressClass)] = [
        ("0.0.0.0/8", AddressClass.unspecified), ("10.0.0.0/8", .private), ("100.64.0.0/10", .carrierGradeNAT),
        ("127.0.0.0/8", .loopback),
        // Azure's platform address: agents, health probes and name servers.
        ("168.63.129.16/32", .private), ("169.254.0.0/16", .linkLocal), ("172.16.0.0/12", .private),
        ("192.0.0.0/24", .reserved), ("192.0.2.0/24", .reserved), ("192.31.196.0/24", .reserved),
        ("192.52.193.0/24", .reserved), ("192.88.99.0/24", .reserved), ("192.168.0.0/16", .private),
        ("192.175.48.0/24", .reserved), ("198.18.0.0/15", .reserved), ("198.51.100.0/24", .reserved),
        ("203.0.113.0/24", .reserved), ("224.0.0.0/4", .multicast), ("240.0.0.0/4", .reserved),
        ("::/128", .unspecified), ("::1/128", .loopback), ("64:ff9b:1::/48", .reserved), ("100::/64", .reserved),
        ("2001:2::/48", .reserved),
        ("2001:10::/28", .reserved), ("2001:20::/28", .reserved), ("2001:db8::/32", .reserved),
        ("2620:4f:8000::/48", .reserved), ("3fff::/20", .reserved), ("5f00::/16", .reserved), ("fc00::/7", .private),
        ("fe80::/10", .linkLocal), ("fec0::/10", .private), ("ff00::/8", .multicast),
    ].compactMap { text, kind in AddressBlock(text).map { ($0, kind) } }

    private static let globalUnicast = AddressBlock("2000::/3")
    private static let translated = AddressBlock("64:ff9b::/96")
    private static let compatible = AddressBlock("::/96")
    /// IETF protocol assignments (RFC 2928), including Teredo.
    private static let protocolAssignments = AddressBlock("2001::/23")

    /// Returns the class of an address. An embedded IPv4 address that is not public determines the class of an IPv6
    /// address.
    package static func classify(_ address: IPAddress) -> AddressClass {
        if let (_, kind) = blocks.first(where: { $0.0.contains(address) }) { return kind }
        guard case .v6 = address else { return .public }
        let inner = embedded(address)
        for four in inner {
            let kind = classify(four)
            if kind != .public { return kind }
        }
        // An address that embeds only public addresses is public, even outside 2000::/3.
        guard inner.isEmpty else { return .public }
        // No addresses outside 2000::/3 are assigned.
        let isAssigned = globalUnicast?.contains(address) == true && protocolAssignments?.contains(address) != true
        return isAssigned ? .public : .reserved
    }

    /// Returns the IPv4 address in `::ffff:a.b.c.d`. Returns nil if the address has a different form.
    package static func mapped(_ address: IPAddress) -> IPAddress? {
        guard case .v6(0, let low) = address, low >> 32 == 0xFFFF else { return nil }
        return .v4(UInt32(truncatingIfNeeded: low))
    }

    /// Returns every IPv4 address that an IPv6 address embeds: mapped and compatible (RFC 4291 §2.5.5), IPv4-translated
    /// (RFC 2765), NAT64 (RFC 6052), 6to4 (RFC 3056), Teredo's server and client (RFC 4380, with the client's bits
    /// inverted) and ISATAP (RFC 5214).
    static func embedded(_ address: IPAddress) -> [IPAddress] {
        guard case .v6(let high, let low) = address else { return [] }
        let last = IPAddress.v4(UInt32(truncatingIfNeeded: low))
        if let mapped = mapped(address) { return [mapped] }
        if compatible?.contains(address) == true || translated?.contains(address) == true { return [last] }
        if high == 0, low >> 32 == 0xFFFF_0000 { return [last] }
        if high >> 48 == 0x2002 { return [.v4(UInt32(truncatingIfNeeded: high >> 16))] }
        if high >> 32 == 0x2001_0000 {
            return [.v4(UInt32(truncatingIfNeeded: high)), .v4(~UInt32(truncatingIfNeeded: low))]
        }
        if low >> 32 & 0xFDFF_FFFF == 0x0000_5EFE { return [last] }
        return []
    }
}
