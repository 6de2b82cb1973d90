/// The metadata that an output keeps, in its standard encodings: EXIF (with or without its `Exif\0\0` prefix), ICC and
/// XMP.
///
/// Each output format inserts the metadata into its own files. The code is in the file of the output.
struct KeptBlobs: Sendable, Hashable {
    var exif: [UInt8]?
    var profile: [UInt8]?
    var xmp: [UInt8]?

    var isEmpty: Bool { exif == nil && profile == nil && xmp == nil }

    static let exifPrefix = [UInt8]("Exif\0\0".utf8)

    /// The EXIF data, starting at its TIFF header.
    var tiff: [UInt8]? {
        exif.map { $0.starts(with: Self.exifPrefix) ? [UInt8]($0.dropFirst(Self.exifPrefix.count)) : $0 }
    }

    /// Returns the part of an original's metadata that an output of this size keeps.
    ///
    /// - Parameter tiff: the original. If it is a TIFF file, its own directory contains the entries that are part of
    ///   EXIF in other formats.
    func kept(_ keep: KeptMetadata, of size: PixelSize, isUpright: Bool, tiff: ByteReader) -> KeptBlobs {
        var kept = KeptBlobs()
        let isPlaced = keep.contains(.position)
        if keep.contains(.exif) {
            kept.exif = exif.flatMap { Self.exif($0, of: size, isUpright: isUpright, keepsPosition: isPlaced) }
        }
        if keep.contains(.xmp) {
            kept.xmp = xmp.map { Self.xmp($0, isUpright: isUpright, keepsPosition: isPlaced) }
        }
        guard keep.contains(.copyright) else { return kept }
        let credits = (exif ?? []).withUnsafeBytes { exif in
            KeptCredits(TIFFHeader(exif.isEmpty ? tiff : ByteReader(exif).withoutExifPrefix), xmp: xmp ?? [])
        }
        kept.exif = kept.exif ?? credits.exif
        kept.xmp = kept.xmp ?? credits.xmp
        return kept
    }
}

/// Encodes integers with a fixed number of bytes, as in container formats.
enum Bytes {
    static func bigEndian(_ number: Int, _ count: Int = 4) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
    }

    /// Returns a box (ISO/IEC 14496-12 §4.2): its length, its type and its content.
    static func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
        bigEndian(body.count + 8) + [UInt8](type.utf8) + body
    }

    static func littleEndian(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
