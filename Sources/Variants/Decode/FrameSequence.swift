/// The frames of an original that a recipe decodes: a single frame, or several frames of an animation.
///
/// Read the frames in order, and finish each frame before starting the next. Frames are decoded on demand, and only the
/// current frame is in memory.
struct FrameSequence {
    /// All frames in order, stacked vertically.
    private let strip: Image
    let count: Int
    /// The frame durations and loop count, or nil if this is a still picture.
    let timing: FrameTiming?

    /// Creates a sequence. Throws `undecodable` if the file has fewer than `count` frames.
    init(_ strip: Image, count: Int) throws(RenderError) {
        self.strip = strip
        self.count = count
        guard count > 1 else {
            timing = nil
            return
        }
        let delays = strip.integers("delay") ?? []
        guard strip.height % count == 0, delays.count >= count else {
            throw RenderError(
                .undecodable,
                "the animation has fewer frames than the \(count) in its header; the file may be truncated")
        }
        // Browsers show a frame for 100 ms if its duration is 10 ms or less.
        let shown = delays.prefix(count).map { $0 <= 10 ? 100 : $0 }
        timing = FrameTiming(delays: shown, loops: max(0, strip.integer("loop") ?? 0))
    }

    var width: Int { strip.width }
    var height: Int { strip.height / count }

    /// Returns a frame as a separate image, so that no step reads across its edges into the next frame.
    func frame(_ index: Int) throws(RenderError) -> Image {
        if count == 1 { return strip }
        return try strip.area(PixelRectangle(x: 0, y: index * height, width: width, height: height))
    }
}

extension Recipe {
    /// Returns the number of frames that a render of this recipe decodes.
    ///
    /// The number is greater than one only if the recipe contains `frames`, the original is an animated GIF or WebP,
    /// and the output is also GIF or WebP. Other outputs use the first frame.
    package func decodedFrames(of header: ImageHeader, into format: ImageFormat) -> Int {
        guard header.format.holdsFrames, format.holdsFrames else { return 1 }
        switch frames {
        case .first: return 1
        case .all: return max(1, header.pages)
        case .count(let count): return max(1, min(count, header.pages))
        }
    }
}
