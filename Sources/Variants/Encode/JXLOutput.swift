import Glibc

/// JPEG XL through libjxl.
struct JXLOutput: OutputEncoder {
    static let format = ImageFormat.jxl
    static let summary = "JPEG XL."
    static let example = "jxl:lossless"
    static let losslessness = Losslessness.onRequest
    static let saver: (operation: String, package: String)? = ("jxlsave_target", "libjxl0.7")

    /// What libvips makes of lower ones is beyond libjxl's coarsest distance, 25, and libjxl then takes its finest usual one.
    private static let lowestQuality = 5

    /// What libjxl does to find a shorter file, 3…9. Its usual 7 costs 0.2 s a megapixel and 1.8 in lossless files, where 12
    /// megapixels would take 22 s; 3, the least there is in libvips, 0.04 and 0.16, for files of about the same size (of a
    /// photograph of 12 megapixels 12 and 6 % smaller). So large pictures take that.
    private func effort(_ pixels: EncodablePixels) -> Int {
        pixels.width * pixels.height > (job.output.isLossless ? 500_000 : 4_000_000) ? 3 : 7
    }

    /// Refuses what libjxl (0.7) would crash on: it takes 20 bytes for each sample, 25 in lossless files, and does not look
    /// whether it gets them. Asking for as much address space, unused, tells whether a worker's limit leaves that.
    private func checkMemory(_ pixels: EncodablePixels) throws(RenderError) {
        let needed = pixels.width * pixels.height * pixels.bands * (job.output.isLossless ? 26 : 22)
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        if let memory = mmap(nil, max(1, needed), PROT_NONE, flags, -1, 0), memory != MAP_FAILED {
            munmap(memory, max(1, needed))
            return
        }
        throw RenderError(
            .overLimit,
            "writing \(pixels.width) × \(pixels.height) pixels as JPEG XL takes about \(needed / 1_000_000) MB, which is more than "
                + "limits.workerMemory leaves; ask for a smaller size or another output, or raise that")
    }

    private let job: EncodeJob

    init(_ job: EncodeJob) { self.job = job }

    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        try checkMemory(pixels)
        var image = try pixels.image()
        if let profile = job.kept.profile {
            // The profile is part of the codestream. libvips writes nothing else with it.
            image = try VipsCall("copy", ["in": .image(image)]).image()
            image.set("icc-profile-data", profile)
        }
        let codestream = try image.saved(
            by: "jxlsave_target",
            [
                "in": .image(image), "Q": .int(max(Self.lowestQuality, quality)),
                "lossless": .bool(job.output.isLossless), "effort": .int(effort(pixels)),
                "strip": .bool(job.kept.profile == nil),
            ], job.control)
        return job.kept.wrapped(jxl: codestream)
    }
}

extension KeptBlobs {
    /// EXIF and XMP as boxes around a bare codestream (ISO/IEC 18181-2 §9); without either the codestream as it is.
    func wrapped(jxl codestream: [UInt8]) -> [UInt8] {
        guard exif != nil || xmp != nil, codestream.starts(with: [0xFF, 0x0A]) else { return codestream }
        func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
            Bytes.bigEndian(body.count + 8) + [UInt8](type.utf8) + body
        }
        var file = box("JXL ", [0x0D, 0x0A, 0x87, 0x0A])
        file += box("ftyp", [UInt8]("jxl ".utf8) + [0, 0, 0, 0] + [UInt8]("jxl ".utf8))
        // The number before EXIF is where its TIFF header starts.
        if let tiff { file += box("Exif", [0, 0, 0, 0] + tiff) }
        if let xmp { file += box("xml ", xmp) }
        return file + box("jxlc", codestream)
    }
}
