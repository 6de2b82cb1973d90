import CWebP

extension WebPOutput {
    /// Encodes an animation. libwebp's animation encoder determines what changes from frame to frame. A frame without
    /// changes extends the previous frame.
    func animation(
        _ pixels: EncodablePixels, _ timing: FrameTiming, quality: Int
    ) throws(RenderError) -> [UInt8] {
        var options = WebPAnimEncoderOptions()
        guard WebPAnimEncoderOptionsInit(&options) != 0 else { throw Self.versionMismatch }
        options.anim_params.loop_count = Int32(min(timing.loops, 65_535))
        options.anim_params.bgcolor = 0
        guard let encoder = WebPAnimEncoderNew(Int32(pixels.width), Int32(pixels.height), &options) else {
            throw RenderError(.encodingFailed, "libwebp could not allocate memory for the animation")
        }
        defer { WebPAnimEncoderDelete(encoder) }
        func refusal() -> RenderError {
            let reason = WebPAnimEncoderGetError(encoder).map { String(cString: $0) } ?? ""
            return RenderError(.encodingFailed, "libwebp rejected the animation: \(reason)")
        }

        var config = try configuration(quality: quality)
        var start = 0
        for (index, delay) in timing.delays.enumerated() {
            try job.control.check()
            let added = try withPicture(pixels, frame: index, usesARGB: true) { picture in
                WebPAnimEncoderAdd(encoder, &picture, Int32(clamping: start), &config) != 0
            }
            try job.control.check()
            if !added { throw refusal() }
            // A duration has 24 bits (RFC 9649 §2.7.1.1).
            start += min(max(0, delay), 0xFF_FFFF)
        }
        guard WebPAnimEncoderAdd(encoder, nil, Int32(clamping: start), nil) != 0 else { throw refusal() }
        var data = WebPData()
        WebPDataInit(&data)
        defer { WebPDataClear(&data) }
        guard WebPAnimEncoderAssemble(encoder, &data) != 0, let bytes = data.bytes else { throw refusal() }
        var file = [UInt8](UnsafeBufferPointer(start: bytes, count: data.size))
        // libwebp sets the alpha flag only if a frame has alpha, but not if clearing opaque frames leaves holes.
        if pixels.bands == 4, file.count > 20, file[12..<16].elementsEqual("VP8X".utf8) { file[20] |= 0x10 }
        return file
    }
}
