/// Encodes AVIF with libheif's AV1 encoder.
///
/// Below quality 90, chroma is stored at half the resolution unless that would lose detail (`PixelStatistics`). Files store
/// luma and chroma, never RGB, so even `lossless` has their rounding errors: 1 of 255 in a few pixels.
struct AVIFOutput: OutputEncoder {
    static let format = ImageFormat.avif
    static let summary = "AVIF; with `lossless`, no value changes by more than 1 of 255."
    static let example = "avif:60"
    static let losslessness = Losslessness.onRequest
    static let defaultQuality = 70
    static let scores: ScoreCurve? = ScoreCurve(
        typical: [-22, -1, 27, 45, 58, 67, 77, 82, 86, 91, 93, 97],
        spread: [45, 45, 38, 29, 19, 14, 9, 8, 7, 5, 4, 2])
    static let hasChroma = true
    /// Compared with effort 0, effort 2 saves 12 % of the bytes at equal scores for six times the CPU time. libvips'
    /// default of 4 saves little more and takes fifty times the CPU time (docs/benchmarks.md).
    static let efforts: DefaultEfforts? = DefaultEfforts(quick: 0, thorough: 2)
    static let secondEffort: Int? = 3
    static let saver: String? = "heifsave_target"
    static let packages = (debian12: "libvips42 with libheif1", debian13: "libheif-plugin-aomenc")
    private static let effortFactors = [1, 4, 6, 12, 50, 60, 110, 200, 300, 400.0]
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double {
        (output.isLossless ? 80 : 20) * effortFactors[output.effort]
    }

    let job: EncodeJob

    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        let image = try pixels.image()
        let bytes = try image.saved(
            by: "heifsave_target",
            [
                "in": .image(image), "compression": "av1", "bitdepth": 8, "Q": .int(quality),
                "effort": .int(job.output.effort),
                "lossless": .bool(job.output.isLossless),
                "subsample-mode": job.output.isLossless ? "off" : job.subsampling(quality), "strip": true,
            ], job.control)
        return try job.kept.inserted(intoAVIF: bytes)
    }
}
