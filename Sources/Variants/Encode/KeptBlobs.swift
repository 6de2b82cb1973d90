/// The metadata an output keeps, in its standard encodings: EXIF (with or without its `Exif\0\0` prefix), ICC, XMP.
///
/// Each output inserts it into files of its own format; the code for that is in the output's file.
struct KeptBlobs: Sendable, Hashable {
    var exif: [UInt8]?
    var profile: [UInt8]?
    var xmp: [UInt8]?

    var isEmpty: Bool { exif == nil && profile == nil && xmp == nil }

    static let exifPrefix = [UInt8]("Exif\0\0".utf8)

    /// EXIF, starting at its TIFF header.
    var tiff: [UInt8]? {
        exif.map { $0.starts(with: Self.exifPrefix) ? [UInt8]($0.dropFirst(Self.exifPrefix.count)) : $0 }
    }

    /// EXIF with the Orientation tag (0x0112) of its first directory set to 1; damaged EXIF is returned unchanged.
    static func upright(_ exif: [UInt8]) -> [UInt8] {
        var bytes = exif
        let base = bytes.starts(with: exifPrefix) ? exifPrefix.count : 0
        let found = exif.withUnsafeBytes { TIFFHeader(ByteReader($0).part(base))?.orientationPlaces ?? [] }
        for place in found where base + place + 2 <= bytes.count {
            let isBigEndian = bytes[base] == 0x4D
            bytes[base + place] = isBigEndian ? 0 : 1
            bytes[base + place + 1] = isBigEndian ? 1 : 0
        }
        return bytes
    }
}

extension KeptBlobs {
    /// XMP with `tiff:Orientation` set to 1, as an attribute or as an element, under whatever prefix the TIFF namespace
    /// has (XMP part 2 §3.2). One digit replaces another, so packets keep their length.
    static func uprightXMP(_ xmp: [UInt8]) -> [UInt8] {
        var bytes = xmp
        let spaces: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
        func afterSpaces(_ at: Int) -> Int {
            var at = at
            while at < bytes.count, spaces.contains(bytes[at]) { at += 1 }
            return at
        }
        for prefix in tiffPrefixes(xmp) {
            let name = prefix + [UInt8](":Orientation".utf8)
            for start in positions(of: name, in: xmp) {
                var at = afterSpaces(start + name.count)
                guard at < bytes.count, bytes[at] == UInt8(ascii: "=") || bytes[at] == UInt8(ascii: ">") else {
                    continue
                }
                let isAttribute = bytes[at] == UInt8(ascii: "=")
                at = afterSpaces(at + 1)
                if isAttribute {
                    guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") || bytes[at] == UInt8(ascii: "'") else {
                        continue
                    }
                    at += 1
                }
                if at < bytes.count, (UInt8(ascii: "1")...UInt8(ascii: "8")).contains(bytes[at]) {
                    bytes[at] = UInt8(ascii: "1")
                }
            }
        }
        return bytes
    }

    /// The prefixes that `xmlns:PREFIX="http://ns.adobe.com/tiff/1.0/"` binds.
    private static func tiffPrefixes(_ xmp: [UInt8]) -> Set<[UInt8]> {
        var prefixes: Set<[UInt8]> = []
        for uri in positions(of: [UInt8]("http://ns.adobe.com/tiff/1.0/".utf8), in: xmp) {
            guard let equals = xmp[..<uri].lastIndex(of: UInt8(ascii: "=")), uri - equals <= 8 else { continue }
            let name = xmp[..<equals].reversed().drop { $0 <= 0x20 }.prefix { $0 > 0x20 && $0 != UInt8(ascii: ":") }
            if !name.isEmpty { prefixes.insert(name.reversed()) }
        }
        return prefixes
    }

    private static func positions(of text: [UInt8], in bytes: [UInt8]) -> [Int] {
        guard let first = text.first, bytes.count >= text.count else { return [] }
        return (0...bytes.count - text.count).filter { at in
            bytes[at] == first && bytes[at..<at + text.count].elementsEqual(text)
        }
    }
}

/// Encodes integers with a fixed number of bytes, as container formats store them.
enum Bytes {
    static func bigEndian(_ number: Int, _ count: Int = 4) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
    }

    static func littleEndian(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
