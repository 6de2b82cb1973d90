import Glibc

enum ByteOrder { case big, little }

/// Reads untrusted bytes with bounds checks. A read out of bounds returns nil instead of trapping, so a parser that is
/// built only on this type is safe for any input. Offsets are relative to the first byte of the reader.
struct ByteReader {
    private let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var count: Int { bytes.count }
    var all: UnsafeRawBufferPointer { bytes }

    func byte(_ offset: Int) -> UInt8? {
        offset >= 0 && offset < bytes.count ? bytes[offset] : nil
    }

    func uint16(_ offset: Int, _ order: ByteOrder = .big) -> Int? { integer(offset, 2, order) }
    func uint24(_ offset: Int, _ order: ByteOrder = .big) -> Int? { integer(offset, 3, order) }
    func uint32(_ offset: Int, _ order: ByteOrder = .big) -> Int? { integer(offset, 4, order) }

    /// Returns a 64-bit integer, clamped to `Int.max`. Callers only compare values of this size.
    func uint64(_ offset: Int, _ order: ByteOrder = .big) -> Int? {
        guard let first = uint32(offset, order), let second = uint32(offset + 4, order) else { return nil }
        let (high, low) = order == .big ? (first, second) : (second, first)
        return high >= 1 << 31 ? Int.max : high << 32 | low
    }

    /// Whether the bytes at `offset` are equal to `text`, which contains only ASCII characters.
    func matches(_ text: StaticString, at offset: Int = 0) -> Bool {
        guard contains(offset, text.utf8CodeUnitCount) else { return false }
        for index in 0..<text.utf8CodeUnitCount where bytes[offset + index] != text.utf8Start[index] { return false }
        return true
    }

    func matches(_ expected: [UInt8], at offset: Int = 0) -> Bool {
        guard contains(offset, expected.count) else { return false }
        for index in expected.indices where bytes[offset + index] != expected[index] { return false }
        return true
    }

    /// Returns the offset of the first occurrence of the ASCII text at or after `offset`. Returns nil if the text does
    /// not occur.
    func firstOffset(of text: StaticString, from offset: Int = 0) -> Int? {
        var at = offset
        while let found = firstOffset(of: text.utf8Start[0], from: at) {
            if matches(text, at: found) { return found }
            at = found + 1
        }
        return nil
    }

    /// Whether the ASCII text occurs in the bytes.
    func contains(_ text: StaticString) -> Bool { firstOffset(of: text) != nil }

    /// Returns four bytes as text, for chunk types, box types and messages. Unprintable bytes become `.`.
    func fourCharacters(_ offset: Int) -> String? {
        guard contains(offset, 4) else { return nil }
        return String(unsafeUninitializedCapacity: 4) { text in
            for index in 0..<4 {
                let byte = bytes[offset + index]
                text[index] = byte >= 0x20 && byte < 0x7F ? byte : UInt8(ascii: ".")
            }
            return 4
        }
    }

    /// Returns at most `length` bytes, starting at `offset`. The result is empty if `offset` is out of bounds.
    func part(_ offset: Int, _ length: Int = Int.max) -> ByteReader {
        guard offset >= 0, offset < bytes.count, length > 0 else {
            return ByteReader(UnsafeRawBufferPointer(start: nil, count: 0))
        }
        let end = offset + min(length, bytes.count - offset)
        return ByteReader(UnsafeRawBufferPointer(rebasing: bytes[offset..<end]))
    }

    /// The EXIF block, starting at its TIFF header.
    var withoutExifPrefix: ByteReader { matches("Exif\0\0") ? part(6) : self }

    /// The file without white space before the first byte of a JPEG or PNG. Scripts on origins sometimes print white
    /// space first, and viewers skip it.
    var withoutLeadingSpace: ByteReader {
        var start = 0
        while let byte = byte(start), byte == 0x20 || (9...13).contains(byte) { start += 1 }
        guard start > 0 else { return self }
        let rest = part(start)
        return JPEGDecoder.recognizes(rest) || PNGDecoder.recognizes(rest) ? rest : self
    }

    /// Returns at most `limit` bytes as text, up to the first NUL and without leading or trailing spaces. Returns nil
    /// if the result is empty.
    func text(_ offset: Int, limit: Int) -> String? {
        var bytes: [UInt8] = []
        while bytes.count < limit, let byte = byte(offset + bytes.count), byte != 0 { bytes.append(byte) }
        // Drops a character that the limit has cut.
        if bytes.count == limit, let lead = bytes.lastIndex(where: { $0 & 0xC0 != 0x80 }), bytes[lead] >= 0xC0 {
            bytes.removeSubrange(lead...)
        }
        // Cameras and editors also write ISO 8859-1 and Windows-1252.
        let text =
            String(validating: bytes, as: UTF8.self)
            ?? String(
                String.UnicodeScalarView(
                    bytes.map { 0x80..<0xA0 ~= $0 ? Self.windows1252[Int($0) - 0x80] : Unicode.Scalar($0) }))
        guard let first = text.firstIndex(where: { $0 != " " }), let last = text.lastIndex(where: { $0 != " " }) else {
            return nil
        }
        return String(text[first...last])
    }

    /// The characters of Windows-1252 from 0x80 to 0x9F.
    private static let windows1252 = Array(
        "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ".unicodeScalars)

    /// Returns the offset of the first `value` at or after `offset`, or nil if it does not occur. Uses memchr, because
    /// entropy-coded data is long.
    func firstOffset(of value: UInt8, from offset: Int) -> Int? {
        guard offset >= 0, offset < bytes.count, let base = bytes.baseAddress else { return nil }
        guard let found = memchr(base + offset, Int32(value), bytes.count - offset) else { return nil }
        return UnsafeRawPointer(found) - base
    }

    private func contains(_ offset: Int, _ length: Int) -> Bool {
        offset >= 0 && offset <= bytes.count && length <= bytes.count - offset
    }

    private func integer(_ offset: Int, _ length: Int, _ order: ByteOrder) -> Int? {
        guard contains(offset, length) else { return nil }
        var value = 0
        for index in 0..<length {
            let byte = Int(bytes[offset + index])
            value = order == .big ? value << 8 | byte : value | byte << (8 * index)
        }
        return value
    }
}
