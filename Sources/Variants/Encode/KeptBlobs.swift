/// Metadata an output keeps, as the bytes of the standards: EXIF (with or without its `Exif\0\0` prefix), ICC, XMP.
struct KeptBlobs: Sendable, Hashable {
    var exif: [UInt8]?
    var profile: [UInt8]?
    var xmp: [UInt8]?

    var isEmpty: Bool { exif == nil && profile == nil && xmp == nil }

    private static let exifPrefix = [UInt8]("Exif\0\0".utf8)

    /// EXIF from its TIFF header on.
    private var tiff: [UInt8]? {
        exif.map { $0.starts(with: Self.exifPrefix) ? [UInt8]($0.dropFirst(Self.exifPrefix.count)) : $0 }
    }

    /// EXIF with the Orientation tag (0x0112) of its first directory set to 1; damaged EXIF comes back as it is.
    static func upright(_ exif: [UInt8]) -> [UInt8] {
        var bytes = exif
        let base = bytes.starts(with: exifPrefix) ? exifPrefix.count : 0
        guard bytes.count >= base + 8 else { return exif }
        let isBigEndian = bytes[base] == 0x4D
        func number(_ at: Int, _ count: Int) -> Int? {
            guard at >= 0, at + count <= bytes.count else { return nil }
            let part = bytes[at..<(at + count)]
            return (isBigEndian ? Array(part) : part.reversed()).reduce(0) { $0 << 8 | Int($1) }
        }
        guard let directory = number(base + 4, 4), let count = number(base + directory, 2) else { return exif }
        for index in 0..<count {
            let entry = base + directory + 2 + index * 12
            guard let tag = number(entry, 2), entry + 12 <= bytes.count else { break }
            if tag == 0x0112 {
                bytes[entry + 8] = isBigEndian ? 0 : 1
                bytes[entry + 9] = isBigEndian ? 1 : 0
            }
        }
        return bytes
    }

    // MARK: JPEG

    /// As APP1 (EXIF, XMP) and APP2 (ICC, in parts of at most 65,519 bytes) behind SOI and JFIF's APP0.
    ///
    /// What a segment cannot hold (64 KiB) is left out. Sources: Exif 2.32 §4.7.2, XMP part 3 §1.1.3, ICC.1 annex B.4.
    func inserted(intoJPEG jpeg: [UInt8]) -> [UInt8] {
        guard !isEmpty, jpeg.count > 4 else { return jpeg }
        var segments: [UInt8] = []
        func append(_ marker: UInt8, _ body: [UInt8]) {
            let length = body.count + 2
            guard length <= 0xFFFF else { return }
            segments += [0xFF, marker, UInt8(length >> 8), UInt8(length & 0xFF)] + body
        }
        if let tiff { append(0xE1, Self.exifPrefix + tiff) }
        if let xmp { append(0xE1, [UInt8]("http://ns.adobe.com/xap/1.0/\0".utf8) + xmp) }
        if let profile {
            let parts = stride(from: 0, to: profile.count, by: 65519).map {
                profile[$0..<min($0 + 65519, profile.count)]
            }
            if parts.count <= 255 {
                for (index, part) in parts.enumerated() {
                    append(0xE2, [UInt8]("ICC_PROFILE\0".utf8) + [UInt8(index + 1), UInt8(parts.count)] + part)
                }
            }
        }
        let hasJFIF = jpeg[2] == 0xFF && jpeg[3] == 0xE0 && jpeg.count > 6
        let at = hasJFIF ? min(jpeg.count, 4 + (Int(jpeg[4]) << 8 | Int(jpeg[5]))) : 2
        return jpeg[..<at] + segments + jpeg[at...]
    }

    // MARK: PNG

    /// As `iCCP`, `eXIf` and `iTXt` chunks behind IHDR (PNG third edition, 11.3).
    func inserted(intoPNG png: [UInt8]) -> [UInt8] {
        let endOfHeader = 8 + 25
        guard !isEmpty, png.count > endOfHeader else { return png }
        var chunks: [UInt8] = []
        func append(_ type: String, _ body: [UInt8]) {
            let checked = [UInt8](type.utf8) + body
            chunks += Self.bigEndian(body.count) + checked + Self.bigEndian(Int(Checksums.crc32(checked)))
        }
        if let profile { append("iCCP", [UInt8]("icc\0\0".utf8) + Checksums.storedZlib(profile)) }
        if let tiff { append("eXIf", tiff) }
        if let xmp { append("iTXt", [UInt8]("XML:com.adobe.xmp\0\0\0\0\0".utf8) + xmp) }
        return png[..<endOfHeader] + chunks + png[endOfHeader...]
    }

    // MARK: WebP

    /// As ICCP, EXIF and XMP chunks of an extended file (RFC 9649 §2.7) around the bitstream of a simple one.
    func wrapped(webP simple: [UInt8], _ pixels: EncodablePixels) -> [UInt8] {
        guard !isEmpty else { return simple }
        var chunks: [UInt8] = []
        func append(_ type: String, _ body: [UInt8]) {
            chunks += [UInt8](type.utf8) + Self.littleEndian(body.count, 4) + body
            if body.count % 2 == 1 { chunks.append(0) }
        }
        var flags: UInt8 = pixels.bands == 4 ? 0x10 : 0
        if profile != nil { flags |= 0x20 }
        if exif != nil { flags |= 0x08 }
        if xmp != nil { flags |= 0x04 }
        append(
            "VP8X",
            [flags, 0, 0, 0] + Self.littleEndian(pixels.width - 1, 3) + Self.littleEndian(pixels.height - 1, 3))
        if let profile { append("ICCP", profile) }
        var at = 12
        while at + 8 <= simple.count {
            let length = (0..<4).reduce(0) { $0 | Int(simple[at + 4 + $1]) << (8 * $1) }
            let end = min(simple.count, at + 8 + length + length % 2)
            if simple[at..<(at + 4)] != [UInt8]("VP8X".utf8)[...] { chunks += simple[at..<end] }
            at = end
        }
        if let tiff { append("EXIF", tiff) }
        if let xmp { append("XMP ", xmp) }
        return [UInt8]("RIFF".utf8) + Self.littleEndian(chunks.count + 4, 4) + [UInt8]("WEBP".utf8) + chunks
    }

    private static func bigEndian(_ number: Int) -> [UInt8] { (0..<4).map { UInt8(number >> (24 - 8 * $0) & 0xFF) } }

    private static func littleEndian(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(number >> (8 * $0) & 0xFF) }
    }
}

/// What PNG chunks need: CRC-32 (ISO 3309) and a zlib stream of stored blocks (RFC 1950, RFC 1951 §3.2.4).
enum Checksums {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }

    static func crc32(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~UInt32(0)) { table[Int(($0 ^ UInt32($1)) & 0xFF)] ^ ($0 >> 8) }
    }

    static func storedZlib(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = [0x78, 0x01]
        var at = 0
        repeat {
            let count = min(65535, bytes.count - at)
            let isLast: UInt8 = at + count == bytes.count ? 1 : 0
            let low = UInt8(count & 0xFF)
            let high = UInt8(count >> 8)
            result += [isLast, low, high, ~low, ~high] + bytes[at..<(at + count)]
            at += count
        } while at < bytes.count
        var (a, b): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            a = (a + UInt32(byte)) % 65521
            b = (b + a) % 65521
        }
        return result + [UInt8(b >> 8), UInt8(b & 0xFF), UInt8(a >> 8), UInt8(a & 0xFF)]
    }
}
