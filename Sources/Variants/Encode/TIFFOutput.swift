/// Encodes 8-bit TIFF with libtiff. Files use deflate with the horizontal predictor and are always lossless.
///
/// Alpha is stored as unassociated, that is, not premultiplied (TIFF 6.0, ExtraSamples). Browsers cannot show TIFF, so
/// an original stays TIFF only if the recipe contains `tiff`. libvips writes no EXIF.
/// Artist and Copyright are entries of the first directory (TIFF 6.0 §8).
struct TIFFOutput: OutputEncoder {
    static let format = ImageFormat.tiff
    static let summary = "TIFF, always lossless."
    static let example = "tiff"
    static let losslessness = Losslessness.always
    static let holds: KeptMetadata = [.copyright, .icc, .iptc, .position, .xmp]
    static let keepsOriginals = false
    static let saver: String? = "tiffsave_buffer"
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double { 130 }

    let job: EncodeJob

    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        let image = try pixels.image()
        if let profile = job.kept.profile { image.set("icc-profile-data", profile) }
        if let xmp = job.kept.xmp { image.set("xmp-data", xmp) }
        job.control.watch(image)
        // libtiff seeks back to the header once it knows the offset of the directory, so it writes to libvips' own
        // memory.
        let file = try VipsCall(
            "tiffsave_buffer",
            [
                "in": .image(image), "compression": "deflate", "predictor": "horizontal",
                "strip": .bool(job.kept.profile == nil && job.kept.xmp == nil),
            ], failure: .encodingFailed
        ).bytes()
        // libvips writes no Artist and Copyright, and only a quarter of the IPTC data with libtiff 4.5.
        var entries: [TIFFHeader.Entry] = (job.kept.tiff ?? []).withUnsafeBytes { exif in
            let header = TIFFHeader(ByteReader(exif))
            return [0x013B, 0x8298].compactMap { tag in header?.block(tag).map { (tag, 2, [UInt8]($0.all)) } }
        }
        if let iim = job.kept.iim { entries.append((0x83BB, 7, iim)) }
        if entries.isEmpty { return file }
        return file.withUnsafeBytes { TIFFHeader(ByteReader($0))?.adding(entries) } ?? file
    }
}
