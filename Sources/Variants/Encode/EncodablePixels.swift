/// Finished pixels that are ready to be encoded: 8 bits per sample, three bands or four with alpha, and rows without
/// padding.
struct EncodablePixels: Sendable {
    /// One frame, or all frames of an animation, stacked vertically.
    let storage: PixelStorage
    let width: Int
    /// The height of one frame.
    let height: Int
    let bands: Int
    /// The frame durations and loop count, or nil if this is a still picture.
    var timing: FrameTiming?

    var frameCount: Int { timing?.delays.count ?? 1 }

    func frame(_ index: Int) -> UnsafeRawBufferPointer {
        let size = width * height * bands
        return UnsafeRawBufferPointer(rebasing: storage.bytes[(index * size)..<((index + 1) * size)])
    }

    /// Returns all frames as one libvips image without metadata. The image is not shared, so the caller may set
    /// metadata.
    func image() throws(RenderError) -> Image {
        try Image(storage, width: width, height: height * frameCount, bands: bands)
            .labeled(bands < 3 ? "b-w" : "srgb")
    }

    /// Consecutive ranges of the bytes, each with at most 65,536 pixels. Code that visits every pixel checks for
    /// cancellation between ranges.
    var runs: some Sequence<Range<Int>> {
        let (count, length) = (storage.count, bands << 16)
        return stride(from: 0, to: count, by: length).lazy.map { $0..<min(count, $0 + length) }
    }

    /// Whether at most one eighth of the pixels are partly transparent, as in a cut-out shape.
    func hasPlainAlpha(_ control: RenderControl) throws(RenderError) -> Bool {
        if bands < 4 { return false }
        let from = storage.bytes
        var between = 0
        for run in runs {
            try control.check()
            for at in stride(from: run.lowerBound + 3, to: run.upperBound, by: 4) {
                between += from[at] &- 1 < 254 ? 1 : 0
            }
        }
        return between * 8 <= storage.count / 4
    }

    /// Returns the pixels without the alpha band if all pixels are opaque. Files then become smaller, and formats
    /// without alpha can be used.
    func droppingOpaqueAlpha(_ control: RenderControl) throws(RenderError) -> EncodablePixels {
        if bands < 4 { return self }
        let from = storage.bytes
        for run in runs {
            try control.check()
            let isOpaque = stride(from: run.lowerBound + 3, to: run.upperBound, by: 4).allSatisfy { from[$0] == 255 }
            if !isOpaque { return self }
        }
        let opaque = PixelStorage(byteCount: storage.count / 4 * 3)
        let to = opaque.mutableBytes
        for run in runs {
            try control.check()
            var at = run.lowerBound / 4 * 3
            for pixel in stride(from: run.lowerBound, to: run.upperBound, by: 4) {
                to[at] = from[pixel]
                to[at + 1] = from[pixel + 1]
                to[at + 2] = from[pixel + 2]
                at += 3
            }
        }
        return EncodablePixels(storage: opaque, width: width, height: height, bands: 3, timing: timing)
    }
}

struct FrameTiming: Sendable, Hashable {
    /// The duration of each frame in milliseconds, which is never negative.
    var delays: [Int]
    /// The number of times that the animation plays, or 0 if it repeats forever.
    var loops: Int
}
