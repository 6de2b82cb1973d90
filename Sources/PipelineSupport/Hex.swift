/// Returns two lowercase hexadecimal digits per byte.
package func hex(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { hex($0) } }

/// Returns two lowercase hexadecimal digits per byte.
package func hex(_ bytes: UnsafeRawBufferPointer) -> String {
    func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x61 + value - 10 }
    return String(unsafeUninitializedCapacity: bytes.count * 2) { text in
        for (at, byte) in bytes.enumerated() {
            text[2 * at] = digit(byte >> 4)
            text[2 * at + 1] = digit(byte & 15)
        }
        return bytes.count * 2
    }
}

/// Returns the value of an uppercase or lowercase hexadecimal digit. Returns nil if the byte is not a hexadecimal
/// digit.
@inlinable package func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
}

/// Decodes percent-encoding exactly once. A plus sign is not changed. Returns nil if `%` is not followed by two
/// hexadecimal digits.
@inlinable package func percentDecoded(_ text: some StringProtocol) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count)
    var rest = text.utf8.makeIterator()
    while let byte = rest.next() {
        guard byte == UInt8(ascii: "%") else {
            bytes.append(byte)
            continue
        }
        guard let high = rest.next().flatMap(hexValue), let low = rest.next().flatMap(hexValue) else { return nil }
        bytes.append(high << 4 | low)
    }
    return bytes
}
