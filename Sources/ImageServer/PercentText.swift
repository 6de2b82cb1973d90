import PipelineSupport

/// The spellings in which texts travel inside one path segment.
package enum PercentText {
    /// Bytes of base64url (RFC 4648 §5), padding optional; nil for anything that is not exactly that.
    static func base64URLDecoded(_ text: some StringProtocol) -> [UInt8]? {
        var digits = Array(text.utf8)
        if digits.count % 4 == 0 {
            for _ in 0..<2 where digits.last == UInt8(ascii: "=") { digits.removeLast() }
        }
        guard digits.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count * 3 / 4)
        var bits: UInt32 = 0
        var held = 0
        for digit in digits {
            guard let value = base64Value(digit) else { return nil }
            bits = bits << 6 | UInt32(value)
            held += 6
            if held >= 8 {
                held -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(held)))
            }
        }
        // Left-over bits that are set would give one text several spellings.
        guard bits & (1 << UInt32(held) - 1) == 0 else { return nil }
        return bytes
    }

    /// Unpadded base64url (RFC 4648 §5).
    static func base64URL(_ bytes: [UInt8]) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = bytes[start..<min(start + 3, bytes.count)]
            let bits = part.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - part.count))
            text += (0...part.count).map { digits[bits >> (18 - 6 * $0) & 63] }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Text as one path segment: unreserved characters (RFC 3986 §2.3) and `:` `,` `=` `@`, which need no encoding in a
    /// segment, stay; every other byte is percent-encoded.
    package static func segment(_ text: String) -> String {
        let hex = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: bytes.append(byte)
            case _ where "-._~:,=@".utf8.contains(byte): bytes.append(byte)
            default: bytes += [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func base64Value(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x41...0x5A: byte - 0x41
        case 0x61...0x7A: byte - 0x61 + 26
        case 0x30...0x39: byte - 0x30 + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
