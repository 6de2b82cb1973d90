struct JXLOutput: OutputEncoder {
    static let format = ImageFormat.jxl
    static let summary = "JPEG XL."
    static let example = "jxl:lossless"
    static let losslessness = Losslessness.onRequest
    static let defaultQuality = 79
    static let choosesLossless = true
    /// Against 3, 5 saves a seventh of the bytes for twice the CPU; libjxl's default of 7 saves no more (docs/benchmarks.md).
    static let efforts: DefaultEfforts? = DefaultEfforts(quick: 3, thorough: 5)
    /// Few programs show JPEG XL.
    static let keepsOriginals = false
    /// libjxl needs 23 bytes for each sample of a pixel, and a picture too large for the worker's memory should still
    /// reach the client, in another format.
    static let largestNegotiated = 8_000_000
    static let saver: String? = "jxlsave_target"
    static let packages = JXLDecoder.packages

    /// Below this, libvips requests a distance beyond libjxl's maximum of 25, and libjxl then uses a fine one instead.
    private static let lowestQuality = 5

    /// The least effort that libvips passes on.
    private static let leastEffort = 3

    /// Rejects a picture that may not fit in memory: libjxl 0.7 does not check its allocations and corrupts the heap if
    /// one fails. Measured from 1 to 50 megapixels it needs 22 bytes a sample, 25.4 if lossless; at efforts of 8 and 9 up to
    /// 95 bytes, 31 and 57 if lossless.
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
            "writing \(pixels.width) × \(pixels.height) pixels as JPEG XL takes about \(needed / 1_000_000) MB, which is more than "
                + "limits.workerMemory leaves; ask for a smaller size, a lower effort or another output, or raise that")
    }
    private static let effortFactors = [1, 1, 1, 1, 1.2, 2, 2.5, 3, 15, 40.0]
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double {
        (output.isLossless ? 140 : 30) * effortFactors[output.effort] * (output.isLossless && output.effort > 4 ? 3 : 1)
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
                "lossless": .bool(job.output.isLossless), "effort": .int(max(Self.leastEffort, job.output.effort)),
                "strip": .bool(job.kept.profile == nil),
            ], job.control)
        return job.kept.wrapped(jxl: codestream)
    }
}

extension KeptBlobs {
    /// Wraps a bare codestream in a container with EXIF and XMP (ISO/IEC 18181-2 §9), if there is either.
    func wrapped(jxl codestream: [UInt8]) -> [UInt8] {
        guard exif != nil || xmp != nil, codestream.starts(with: [0xFF, 0x0A]) else { return codestream }
        var file = Bytes.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A])
        file += Bytes.box("ftyp", [UInt8]("jxl ".utf8) + [0, 0, 0, 0] + [UInt8]("jxl ".utf8))
        // The four bytes before EXIF give the offset of its TIFF header.
        if let tiff { file += Bytes.box("Exif", [0, 0, 0, 0] + tiff) }
        if let xmp { file += Bytes.box("xml ", xmp) }
        return file + Bytes.box("jxlc", codestream)
    }
}
