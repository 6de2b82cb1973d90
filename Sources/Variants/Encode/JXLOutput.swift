struct JXLOutput: OutputEncoder {
    static let format = ImageFormat.jxl
    static let summary =
        "JPEG XL. `transcode` keeps the data of a JPEG original, which can be restored, and only without other steps."
    static let example = "jxl:lossless"
    static let losslessness = Losslessness.onRequest
    static let defaultQuality = 79
    static let scores: ScoreCurve? = ScoreCurve(
        typical: [13, 32, 49, 51, 54, 60, 63, 70, 78, 85, 90, 97],
        spread: [39, 31, 24, 21, 18, 15, 14, 12, 11, 8, 6, 3])
    static let choosesLossless = true
    static let canTranscode = true
    /// Compared with effort 3, effort 5 saves a ninth of the bytes at equal scores, for twice the CPU time. libjxl's
    /// default of 7 does not save more (docs/benchmarks.md).
    static let efforts: DefaultEfforts? = DefaultEfforts(quick: 3, thorough: 5)
    static let secondEffort: Int? = 5
    /// Few programs can show JPEG XL.
    static let keepsOriginals = false
    /// libjxl needs 23 bytes of memory per sample. A picture that is too large for the worker's memory is therefore
    /// negotiated in a different format.
    static let largestNegotiated = 8_000_000
    static let saver: String? = "jxlsave_target"
    static let packages = JXLDecoder.packages

    /// The minimum quality. Below this value, libvips requests a distance beyond libjxl's maximum of 25, and libjxl
    /// then uses a small distance instead.
    private static let lowestQuality = 5

    /// The minimum effort that libvips passes on.
    private static let minEffort = 3

    /// Throws if the picture may not fit in memory. libjxl 0.7 does not check its allocations and corrupts the heap if
    /// one fails. For pictures of 1 to 50 megapixels, it needs 22 bytes per sample, or 25.4 if the file is lossless. At
    /// efforts 8 and 9, it needs up to 95 bytes per sample, or 31 and 57 if the file is lossless.
    private func checkMemory(_ pixels: EncodablePixels) throws(RenderError) {
        let samples = pixels.width * pixels.height * pixels.bands
        let perSample =
            switch job.output.effort {
            case ...7: job.output.isLossless ? 26 : 23
            case 8: job.output.isLossless ? 36 : 105
            default: job.output.isLossless ? 65 : 105
            }
        let needed = samples * perSample + 16 << 20
        if AddressSpace.hasRoom(for: needed) { return }
        throw RenderError(
            .overLimit,
            "writing \(pixels.width) × \(pixels.height) pixels as JPEG XL takes about \(needed / 1_000_000) MB, more than "
                + "limits.workerMemory allows; use a smaller size, a lower effort or a different output, or raise this limit"
        )
    }
    private static let effortFactors = [1, 1, 1, 1, 1.2, 2, 2.5, 3, 15, 40.0]
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double {
        if output.transcodes, !output.transcodesIfSmaller { return 25 }
        return (output.transcodes ? 25 : 0) + (output.isLossless ? 140 : 30) * effortFactors[output.effort]
            * (output.isLossless && output.effort > 4 ? 3 : 1)
    }

    let job: EncodeJob

    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        try checkMemory(pixels)
        let image = try pixels.image()
        // The profile is part of the codestream, so libvips must write it. The image has no other metadata.
        if let profile = job.kept.profile { image.set("icc-profile-data", profile) }
        let codestream = try image.saved(
            by: "jxlsave_target",
            [
                "in": .image(image), "Q": .int(max(Self.lowestQuality, quality)),
                "lossless": .bool(job.output.isLossless), "effort": .int(max(Self.minEffort, job.output.effort)),
                "strip": .bool(job.kept.profile == nil),
            ], job.control)
        return job.kept.wrapped(jxl: codestream)
    }
}

extension KeptBlobs {
    /// Returns a bare codestream in a container with EXIF and XMP (ISO/IEC 18181-2 §9). Returns the codestream
    /// unchanged if EXIF and XMP are both nil.
    func wrapped(jxl codestream: [UInt8]) -> [UInt8] {
        guard exif != nil || xmp != nil, codestream.starts(with: [0xFF, 0x0A]) else { return codestream }
        var file = Bytes.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A])
        file += Bytes.box("ftyp", [UInt8]("jxl ".utf8) + [0, 0, 0, 0] + [UInt8]("jxl ".utf8))
        // The four bytes before the EXIF data are the offset of its TIFF header.
        if let tiff { file += Bytes.box("Exif", [0, 0, 0, 0] + tiff) }
        if let xmp { file += Bytes.box("xml ", xmp) }
        return file + Bytes.box("jxlc", codestream)
    }
}
