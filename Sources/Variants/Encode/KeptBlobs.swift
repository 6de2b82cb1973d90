/// The metadata that an output keeps, in its standard encodings: EXIF (with or without its `Exif\0\0` prefix), ICC, IIM
/// and XMP.
///
/// Each output format inserts the metadata into its own files. The code is in the file of the output.
struct KeptBlobs: Sendable, Hashable {
    var exif: [UInt8]?
    var profile: [UInt8]?
    /// Data sets of IIM. Those of an original can be in resources of Photoshop.
    var iim: [UInt8]?
    var xmp: [UInt8]?

    var isEmpty: Bool { exif == nil && profile == nil && iim == nil && xmp == nil }

    static let exifPrefix = [UInt8]("Exif\0\0".utf8)

    /// The EXIF data, starting at its TIFF header.
    var tiff: [UInt8]? {
        exif.map { $0.starts(with: Self.exifPrefix) ? [UInt8]($0.dropFirst(Self.exifPrefix.count)) : $0 }
    }

    /// Returns the part of an original's metadata that an output of this size keeps.
    ///
    /// - Parameters:
    ///   - output: the output, which determines what is kept.
    ///   - tiff: the original. If it is a TIFF file, its own directory contains the entries that are part of EXIF in
    ///     other formats.
    func kept(for output: ResolvedOutput, of size: PixelSize, isUpright: Bool, tiff: ByteReader) -> KeptBlobs {
        let keep = output.keep
        var kept = KeptBlobs()
        let isPlaced = keep.contains(.position)
        if keep.contains(.exif) {
            kept.exif = exif.flatMap { Self.exif($0, of: size, isUpright: isUpright, keepsPosition: isPlaced) }
        }
        if keep.contains(.xmp) {
            kept.xmp = xmp.map { Self.xmp($0, isUpright: isUpright, keepsPosition: isPlaced) }
        }
        let iim = iim.map { $0.withUnsafeBytes { IIM(ByteReader($0)) } }
        if keep.contains(.iptc) { kept.iim = iim?.kept(keepsPosition: isPlaced).bytes }
        // A segment of a JPEG holds less than 64 KiB, and `missing` adds at most 8,000 bytes. Metadata that is longer is
        // replaced by the credits.
        if output.format == .jpeg || output.transcodes {
            func fitting(_ bytes: [UInt8]?) -> [UInt8]? { bytes.flatMap { $0.count <= 57_000 ? $0 : nil } }
            (kept.exif, kept.iim, kept.xmp) = (fitting(kept.exif), fitting(kept.iim), fitting(kept.xmp))
        }
        guard keep.contains(.copyright) else { return kept }
        let credits = (exif ?? []).withUnsafeBytes { exif in
            KeptCredits(
                TIFFHeader(exif.isEmpty ? tiff : ByteReader(exif).withoutExifPrefix), iim: iim, xmp: xmp ?? [],
                for: output.format)
        }
        kept.exif = kept.exif ?? credits.exif
        kept.iim = kept.iim ?? credits.iim
        if let xmp = kept.xmp, let missing = credits.missing {
            let end = xmp.withUnsafeBytes { ByteReader($0).firstOffset(of: "</rdf:RDF>") }
            if let end { kept.xmp = Array(xmp[..<end]) + Array(missing.utf8) + xmp[end...] }
        }
        kept.xmp = kept.xmp ?? credits.xmp
        return kept
    }
}

extension KeptBlobs {
    /// Reads the EXIF, IIM and XMP of an original, as far as an output that keeps `keep` needs them.
    init(_ image: Image, _ file: ByteReader, _ format: ImageFormat, for keep: KeptMetadata) {
        func limit(_ kind: KeptMetadata) -> Int { keep.contains(kind) ? .max : KeptCredits.inputLimit }
        exif = image.blob("exif-data", limit: limit(.exif))
        xmp = image.xmp(limit: limit(.xmp))
        switch format {
        case .gif: xmp = GIFDecoder.xmp(file)
        // libvips has only the last of several segments.
        case .jpeg: iim = IIM.resources(ofJPEG: file)
        // libvips 8.14 reads no metadata. The first four bytes of EXIF are the offset of its TIFF header, usually 0.
        case .jxl:
            exif = exif ?? HEIFHeader.child("Exif", of: file).map { [UInt8]($0.part(4, limit(.exif)).all) }
            xmp = xmp ?? HEIFHeader.child("xml ", of: file).map { [UInt8]($0.part(0, limit(.xmp)).all) }
        default: iim = TIFFHeader(file)?.block(0x83BB).map { [UInt8]($0.part(0, KeptCredits.inputLimit).all) }
        }
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
