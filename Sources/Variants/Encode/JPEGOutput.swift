/// Encodes JPEG with libjpeg-turbo.
///
/// Huffman tables are optimized for each picture, which saves 4 to 12 % (docs/benchmarks.md). Below quality 90, chroma
/// is stored at half the resolution, as in libvips and libjpeg's own programs, unless that would lose detail
/// (`PixelStatistics`). Trellis quantization and other quantization tables need mozjpeg, which Debian's libvips does not
/// include.
struct JPEGOutput: OutputEncoder {
    static let format = ImageFormat.jpeg
    static let summary = "JPEG; alpha is flattened onto the last `background`, by default white."
    static let example = "jpeg:85:progressive"
    static let losslessness = Losslessness.never
    static let scores: ScoreCurve? = ScoreCurve(
        typical: [-56, 12, 43, 54, 62, 67, 70, 75, 80, 87, 92, 96],
        spread: [31, 36, 20, 17, 12, 10, 9, 9, 8, 6, 5, 3])
    static let canBeProgressive = true
    static let hasChroma = true
    static let holds: KeptMetadata = [.copyright, .exif, .icc, .iptc, .position, .xmp]
    /// A stop makes the next write fail. The encoder writes while it encodes, or once per scan if the file is
    /// progressive.
    static func heedsStops(_ output: ResolvedOutput) -> Bool { true }
    static let saver: String? = "jpegsave_target"
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double { output.isProgressive ? 10 : 5 }

    let job: EncodeJob

    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        let image = try pixels.image()
        let bytes = try image.saved(
            by: "jpegsave_target",
            [
                "in": .image(image), "Q": .int(quality), "interlace": .bool(job.output.isProgressive),
                "optimize-coding": true, "subsample-mode": job.subsampling(quality), "strip": true,
            ], job.control)
        return job.kept.inserted(intoJPEG: bytes)
    }
}

extension KeptBlobs {
    /// Returns the file with APP1 (EXIF, XMP), APP2 (ICC, in parts of at most 65,519 bytes) and APP13 segments (IIM)
    /// inserted after SOI and JFIF's APP0.
    ///
    /// Omits metadata that is too long for a segment (64 KiB). See Exif 2.32 §4.7.2, XMP part 3 §1.1.3, ICC.1 annex
    /// B.4.
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
        if let iim { append(0xED, IIM.segment(iim)) }
        let hasJFIF = jpeg[2] == 0xFF && jpeg[3] == 0xE0 && jpeg.count > 6
        let at = hasJFIF ? min(jpeg.count, 4 + (Int(jpeg[4]) << 8 | Int(jpeg[5]))) : 2
        return jpeg[..<at] + segments + jpeg[at...]
    }
}
