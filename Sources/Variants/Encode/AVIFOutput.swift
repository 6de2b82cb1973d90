/// AVIF through libheif's AV1 encoder.
///
/// Chroma has half the resolution below quality 90, the full one from there on and where `lossless` is asked. AVIF files
/// hold luma and chroma here, never RGB, so `lossless` means what their rounding leaves: 1 of 255 in a few pixels.
struct AVIFOutput: OutputEncoder {
    static let format = ImageFormat.avif
    static let summary = "AVIF; `lossless` keeps every value within 1 of 255."
    static let example = "avif:60"
    static let losslessness = Losslessness.onRequest
    static let defaultQuality = 70
    static let saver: (operation: String, package: String)? = ("heifsave_target", "libheif1")

    /// How long libaom looks for a shorter file, 0…9. 4, libvips' default, takes twenty to thirty times the CPU of 0 for
    /// a tenth fewer bytes at equal scores: work for the background, not for a request.
    private static let effort = 0

    private let job: EncodeJob

    init(_ job: EncodeJob) { self.job = job }

    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        let image = try pixels.image()
        let bytes = try image.saved(
            by: "heifsave_target",
            [
                "in": .image(image), "compression": "av1", "bitdepth": 8, "Q": .int(quality),
                "effort": .int(Self.effort),
                "lossless": .bool(job.output.isLossless),
                "subsample-mode": job.output.isLossless ? "off" : "auto", "strip": true,
            ], job.control)
        return try job.kept.inserted(intoAVIF: bytes)
    }
}
