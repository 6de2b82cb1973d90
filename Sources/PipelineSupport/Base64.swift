/// Encodes Base64 with padding, and the URL-safe form without padding (RFC 4648 §4 and §5).
package enum Base64 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

    package static func text(_ bytes: [UInt8]) -> String {
        let text = encoded(bytes, "+/")
        return text + String(repeating: "=", count: -text.utf8.count & 3)
    }

    package static func urlText(_ bytes: [UInt8]) -> String { encoded(bytes, "-_") }

    private static func encoded(_ bytes: [UInt8], _ last: String) -> String {
        let digits = digits + Array(last.utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = bytes[start..<min(start + 3, bytes.count)]
            let bits = part.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - part.count))
            text += (0...part.count).map { digits[bits >> (18 - 6 * $0) & 63] }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes the URL-safe form. Padding is optional. Returns nil if `text` is not valid.
    package static func urlDecoded(_ text: some StringProtocol) -> [UInt8]? {
        var digits = Array(text.utf8)
        if digits.count % 4 == 0 {
            for _ in 0..<2 where digits.last == UInt8(ascii: "=") { digits.removeLast() }
        }
        guard digits.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count * 3 / 4)
        var (bits, held): (UInt32, Int) = (0, 0)
        for digit in digits {
            guard let value = value(digit) else { return nil }
            bits = bits << 6 | UInt32(value)
            held += 6
            if held >= 8 {
                held -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(held)))
            }
        }
        // Reject nonzero trailing bits, because otherwise the same bytes would have several encodings.
        return bits & (1 << UInt32(held) - 1) == 0 ? bytes : nil
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x41...0x5A: digit - 0x41
        case 0x61...0x7A: digit - 0x61 + 26
        case 0x30...0x39: digit - 0x30 + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
