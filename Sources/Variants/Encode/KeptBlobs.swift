/// Metadata an output keeps, as the bytes of the standards: EXIF (with or without its `Exif\0\0` prefix), ICC, XMP.
///
/// Each output puts it into its own files; the code for that is in the output's file.
struct KeptBlobs: Sendable, Hashable {
    var exif: [UInt8]?
    var profile: [UInt8]?
    var xmp: [UInt8]?

    var isEmpty: Bool { exif == nil && profile == nil && xmp == nil }

    static let exifPrefix = [UInt8]("Exif\0\0".utf8)

    /// EXIF from its TIFF header on.
    var tiff: [UInt8]? {
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
}

/// Numbers of a fixed width, as containers write them.
enum Bytes {
    static func bigEndian(_ number: Int, _ count: Int = 4) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
    }

    static func littleEndian(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
