/// AVIF through libheif's AV1 encoder.
///
/// Chroma has half the resolution below quality 90, and full resolution from 90 on or if `lossless` is requested. Files
/// hold luma and chroma, never RGB, so `lossless` still leaves their rounding errors: 1 of 255 in a few pixels.
struct AVIFOutput: OutputEncoder {
    static let format = ImageFormat.avif
    static let summary = "AVIF; `lossless` keeps every value within 1 of 255."
    static let example = "avif:60"
    static let losslessness = Losslessness.onRequest
    static let defaultQuality = 70
    static let saver: String? = "heifsave_target"
    static let packages = (debian12: "libvips42 with libheif1", debian13: "libheif-plugin-aomenc")

    /// How hard libaom tries to make the file shorter, 0…9. libvips' default of 4 takes twenty to thirty times the CPU
    /// of 0 and saves a tenth of the bytes at equal scores: worth it in the background, but not during a request.
    private static let effort = 0
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double { output.isLossless ? 80 : 20 }

    let job: EncodeJob

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
