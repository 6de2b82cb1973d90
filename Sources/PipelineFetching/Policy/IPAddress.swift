import Glibc
import PipelineSupport

package enum IPAddress: Sendable, Hashable, CustomStringConvertible {
    /// An IPv4 address: four octets as one number, with the first octet as the most significant.
    case v4(UInt32)
    /// An IPv6 address: the upper and lower eight octets.
    case v6(UInt64, UInt64)

    /// Parses dotted-decimal or RFC 4291 text. Zones, brackets, and short or octal IPv4 spellings are invalid.
    package init?(_ text: String) {
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self = .v4(UInt32(bigEndian: four.s_addr))
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            self.init(six)
        } else {
            return nil
        }
    }

    /// Returns the IPv4 address of an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`), and returns any other text
    /// unchanged.
    ///
    /// A socket that listens on `[::]` reports the addresses of IPv4 clients in the mapped form.
    package static func plain(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: ":")), let address = IPAddress(text) else { return text }
        return AddressPolicy.mapped(address)?.description ?? text
    }

    /// Returns the address in a socket address, or nil if the family is neither IPv4 nor IPv6.
    init?(_ address: UnsafePointer<sockaddr>) {
        let raw = UnsafeRawPointer(address)
        // Read by offset, because curl.h also declares `sockaddr`, and the declaration that provides `sa_family` varies
        // between builds.
        switch Int32(raw.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET: self = .v4(UInt32(bigEndian: raw.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr))
        case AF_INET6: self.init(raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr)
        default: return nil
        }
    }

    private init(_ address: in6_addr) {
        let halves = withUnsafeBytes(of: address) { bytes in
            (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        self = .v6(UInt64(bigEndian: halves.0), UInt64(bigEndian: halves.1))
    }

    /// The address in dotted decimal, or in RFC 5952 format if it is an IPv6 address.
    package var description: String {
        switch self {
        case .v4(let value):
            return "\(value >> 24).\(value >> 16 & 255).\(value >> 8 & 255).\(value & 255)"
        case .v6(let high, let low):
            var address = in6_addr()
            withUnsafeMutableBytes(of: &address) { bytes in
                bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
                bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            inet_ntop(AF_INET6, &address, &buffer, socklen_t(buffer.count))
            return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
    }

    /// The first address of the network: the /24 of an IPv4 address (including a mapped address), or the /48 of an IPv6
    /// address.
    var network: IPAddress {
        switch AddressPolicy.mapped(self) ?? self {
        case .v4(let value): .v4(value & ~0xFF)
        case .v6(let high, _): .v6(high & ~0xFFFF, 0)
        }
    }

    /// Returns the number of leading bits that two addresses of the same family share, or nil if the families differ.
    func commonPrefix(_ other: IPAddress) -> Int? {
        switch (self, other) {
        case (.v4(let a), .v4(let b)): (a ^ b).leadingZeroBitCount
        case (.v6(let a, let b), .v6(let c, let d)):
            a == c ? 64 + (b ^ d).leadingZeroBitCount : (a ^ c).leadingZeroBitCount
        default: nil
        }
    }
}

/// A block of addresses, such as `10.0.0.0/8`, `::1` or `[fd00::]/8`.
package struct AddressBlock: Sendable, Hashable, CustomStringConvertible {
    /// An address in the block. Bits after the prefix do not matter.
    package let address: IPAddress
    /// The number of leading bits that addresses in the block share with `address`.
    package let prefix: Int

    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(String(parts[0])) else { return nil }
        let width = if case .v4 = address { 32 } else { 128 }
        var prefix = width
        if parts.count == 2 {
            guard parts[1].utf8.allSatisfy(\.isDigit), let given = Int(parts[1]), given <= width else {
                return nil
            }
            prefix = given
        }
        self.address = address
        self.prefix = prefix
    }

    package func contains(_ other: IPAddress) -> Bool { (address.commonPrefix(other) ?? -1) >= prefix }

    package var description: String { "\(address)/\(prefix)" }
}
