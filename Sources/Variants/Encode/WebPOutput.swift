import CWebP

/// Encodes still and animated WebP with libwebp directly. Unlike the saver of libvips, this encoder can be stopped
/// while it encodes.
///
/// Lossless files preserve every visible pixel, but smooth the colors of fully transparent pixels. Lossy files store
/// chroma at half the resolution. libwebp's sharp conversion preserves more of the chroma in detailed pictures
/// (`PixelStatistics`).
struct WebPOutput: OutputEncoder {
    static let format = ImageFormat.webp
    static let summary = "WebP, animated with `frames:all`."
    static let example = "webp:max=20kB"
    static let losslessness = Losslessness.onRequest
    static let defaultQuality = 82
    static let scores: ScoreCurve? = ScoreCurve(
        typical: [25, 35, 46, 52, 58, 63, 65, 68, 74, 82, 85, 87],
        spread: [33, 32, 30, 26, 21, 19, 17, 16, 13, 12, 14, 14])
    static let choosesLossless = true
    /// Effort 6 corresponds to libwebp's default of method 4. For lossless files, effort 9 takes thirty times the CPU
    /// time of effort 8 and saves half a percent.
    static let efforts: DefaultEfforts? = DefaultEfforts(quick: 6, thorough: 8)
    /// libwebp rarely calls its progress hook while encoding losslessly.
    static func heedsStops(_ output: ResolvedOutput) -> Bool { !output.isLossless }
    private static let lossyFactors = [0.6, 0.65, 0.7, 1, 1, 1, 1, 1, 1.2, 2.4]
    private static let losslessFactors = [0.1, 0.3, 0.35, 0.4, 0.6, 0.8, 1, 1.1, 1.3, 30]
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double {
        output.isLossless ? 400 * losslessFactors[output.effort] : 55 * lossyFactors[output.effort]
    }

    let job: EncodeJob

    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        guard pixels.width <= WEBP_MAX_DIMENSION, pixels.height <= WEBP_MAX_DIMENSION else {
            throw RenderError(
                .notApplicable,
                "a WebP can have at most \(WEBP_MAX_DIMENSION) px per edge, not \(pixels.width) × \(pixels.height); use a "
                    + "smaller size or a different output")
        }
        let bytes =
            if let timing = pixels.timing {
                try animation(pixels, timing, quality: quality)
            } else {
                try still(pixels, quality: quality)
            }
        return job.kept.wrapped(webP: bytes, pixels)
    }

    /// Returns libwebp's settings for one picture or frame.
    func configuration(quality: Int) throws(RenderError) -> WebPConfig {
        var config = WebPConfig()
        // The level of lossless compression, 0…9, sets the method, 0…6, and also the quality for lossless files.
        guard WebPConfigInit(&config) != 0, WebPConfigLosslessPreset(&config, Int32(job.output.effort)) != 0 else {
            throw Self.versionMismatch
        }
        if job.output.isLossless { return config }
        config.lossless = 0
        config.quality = Float(quality)
        config.use_sharp_yuv = job.hasChromaDetail ? 1 : 0
        return config
    }

    static var versionMismatch: RenderError {
        RenderError(
            .encodingFailed,
            "the installed libwebp does not match the version that this program was built for; reinstall the program or libwebp"
        )
    }

    /// Calls `body` with one frame as a libwebp picture. Stopping the render stops the encoding.
    func withPicture<Value>(
        _ pixels: EncodablePixels, frame: Int, usesARGB: Bool,
        _ body: (inout WebPPicture) throws(RenderError) -> Value
    ) throws(RenderError) -> Value {
        var picture = WebPPicture()
        guard WebPPictureInit(&picture) != 0 else { throw Self.versionMismatch }
        defer { WebPPictureFree(&picture) }
        picture.use_argb = usesARGB ? 1 : 0
        picture.width = Int32(pixels.width)
        picture.height = Int32(pixels.height)
        let source = pixels.frame(frame)
        guard let start = source.bindMemory(to: UInt8.self).baseAddress else {
            throw RenderError(.encodingFailed, "there are no pixels")
        }
        let rowBytes = Int32(pixels.width * pixels.bands)
        let imported =
            pixels.bands == 4
            ? WebPPictureImportRGBA(&picture, start, rowBytes) : WebPPictureImportRGB(&picture, start, rowBytes)
        guard imported != 0 else {
            throw RenderError(.encodingFailed, "libwebp could not allocate memory for the picture")
        }
        picture.progress_hook = { _, picture in
            guard let user = picture?.pointee.user_data else { return 1 }
            return Unmanaged<RenderControl>.fromOpaque(user).takeUnretainedValue().isStopped ? 0 : 1
        }
        picture.user_data = Unmanaged.passUnretained(job.control).toOpaque()
        defer { withExtendedLifetime(job.control) {} }
        return try body(&picture)
    }

    private func still(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        var config = try configuration(quality: quality)
        // Otherwise, libwebp would try to predict alpha from neighboring pixels, although it never chooses this for the
        // alpha of a mask.
        if try pixels.hasPlainAlpha(job.control) { config.alpha_filtering = 0 }
        return try withPicture(pixels, frame: 0, usesARGB: config.lossless == 1 || config.use_sharp_yuv == 1) {
            picture throws(RenderError) in
            var writer = WebPMemoryWriter()
            WebPMemoryWriterInit(&writer)
            defer { WebPMemoryWriterClear(&writer) }
            let status = withUnsafeMutablePointer(to: &writer) { writer in
                picture.writer = WebPMemoryWrite
                picture.custom_ptr = UnsafeMutableRawPointer(writer)
                return WebPEncode(&config, &picture)
            }
            try job.control.check()
            guard status != 0, let memory = writer.mem else {
                throw RenderError(
                    .encodingFailed, "libwebp rejected the picture (error \(picture.error_code.rawValue))")
            }
            return [UInt8](UnsafeBufferPointer(start: memory, count: writer.size))
        }
    }
}

extension KeptBlobs {
    /// Returns an extended file (RFC 9649 §2.7) with ICCP, EXIF and XMP chunks around the chunks of `file`.
    func wrapped(webP file: [UInt8], _ pixels: EncodablePixels) -> [UInt8] {
        guard !isEmpty else { return file }
        var chunks: [UInt8] = []
        func append(_ type: String, _ body: [UInt8]) {
            chunks += [UInt8](type.utf8) + Bytes.littleEndian(body.count, 4) + body
            if body.count % 2 == 1 { chunks.append(0) }
        }
        var flags: UInt8 = pixels.bands == 4 ? 0x10 : 0
        let isExtended = file.count > 20 && file[12..<16].elementsEqual("VP8X".utf8)
        // Keep the animation and alpha flags if the file is already extended.
        if isExtended { flags |= file[20] & 0x12 }
        if profile != nil { flags |= 0x20 }
        if exif != nil { flags |= 0x08 }
        if xmp != nil { flags |= 0x04 }
        append(
            "VP8X",
            [flags, 0, 0, 0] + Bytes.littleEndian(pixels.width - 1, 3) + Bytes.littleEndian(pixels.height - 1, 3))
        if let profile { append("ICCP", profile) }
        var at = 12
        while at + 8 <= file.count {
            let length = (0..<4).reduce(0) { $0 | Int(file[at + 4 + $1]) << (8 * $1) }
            let end = min(file.count, at + 8 + length + length % 2)
            if !file[at..<(at + 4)].elementsEqual("VP8X".utf8) { chunks += file[at..<end] }
            at = end
        }
        if let tiff { append("EXIF", tiff) }
        if let xmp { append("XMP ", xmp) }
        return [UInt8]("RIFF".utf8) + Bytes.littleEndian(chunks.count + 4, 4) + [UInt8]("WEBP".utf8) + chunks
    }
}
