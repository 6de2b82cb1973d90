import CWebP

/// WebP through libwebp itself: unlike libvips' saver it can be stopped, and it knows a byte budget.
struct WebPEncoder {
    let output: ResolvedOutput
    let kept: KeptBlobs
    let control: RenderControl

    func encode(_ pixels: EncodablePixels) throws(RenderError) -> [UInt8] {
        guard pixels.width <= WEBP_MAX_DIMENSION, pixels.height <= WEBP_MAX_DIMENSION else {
            throw RenderError(.notApplicable, "WebP holds at most \(WEBP_MAX_DIMENSION) px an edge")
        }
        var bytes = kept.wrapped(webP: try once(pixels, targetSize: nil), pixels)
        guard let limit = output.maxBytes, bytes.count > limit else { return bytes }
        var smallest = bytes.count
        if !output.isLossless {
            // libwebp comes near its target from both sides: aim lower until the file meets the budget.
            let overhead = kept.wrapped(webP: [], pixels).count
            for share in [1.0, 0.96, 0.9, 0.8] {
                let target = Int(Double(limit - overhead) * share)
                guard target > 0 else { break }
                bytes = kept.wrapped(webP: try once(pixels, targetSize: target), pixels)
                if bytes.count <= limit { return bytes }
                smallest = min(smallest, bytes.count)
            }
        }
        throw RenderError(.overBudget, "no quality gives \(limit) bytes or less; the smallest file had \(smallest)")
    }

    private func once(_ pixels: EncodablePixels, targetSize: Int?) throws(RenderError) -> [UInt8] {
        try control.check()
        var config = WebPConfig()
        var picture = WebPPicture()
        guard WebPConfigInit(&config) != 0, WebPPictureInit(&picture) != 0 else {
            throw RenderError(.encodingFailed, "libwebp is of another version than its headers")
        }
        defer { WebPPictureFree(&picture) }
        config.quality = Float(output.quality)
        config.lossless = output.isLossless ? 1 : 0
        if output.isLossless { config.quality = 75 }
        if let targetSize {
            config.target_size = Int32(clamping: targetSize)
            config.pass = 6
        }
        picture.use_argb = output.isLossless ? 1 : 0
        picture.width = Int32(pixels.width)
        picture.height = Int32(pixels.height)
        let source = pixels.storage.bytes
        guard let start = source.bindMemory(to: UInt8.self).baseAddress else {
            throw RenderError(.encodingFailed, "there are no pixels")
        }
        let imported =
            pixels.bands == 4
            ? WebPPictureImportRGBA(&picture, start, Int32(pixels.width * 4))
            : WebPPictureImportRGB(&picture, start, Int32(pixels.width * 3))
        guard imported != 0 else { throw RenderError(.encodingFailed, "libwebp has no memory for the picture") }

        var writer = WebPMemoryWriter()
        WebPMemoryWriterInit(&writer)
        defer { WebPMemoryWriterClear(&writer) }
        let status = withUnsafeMutablePointer(to: &writer) { writer in
            picture.writer = WebPMemoryWrite
            picture.custom_ptr = UnsafeMutableRawPointer(writer)
            picture.progress_hook = { _, picture in
                guard let user = picture?.pointee.user_data else { return 1 }
                return Unmanaged<RenderControl>.fromOpaque(user).takeUnretainedValue().isStopped ? 0 : 1
            }
            return withExtendedLifetime(control) {
                picture.user_data = Unmanaged.passUnretained(control).toOpaque()
                return WebPEncode(&config, &picture)
            }
        }
        try control.check()
        guard status != 0, let memory = writer.mem else {
            throw RenderError(.encodingFailed, "libwebp refuses the picture (error \(picture.error_code.rawValue))")
        }
        return [UInt8](UnsafeBufferPointer(start: memory, count: writer.size))
    }
}
