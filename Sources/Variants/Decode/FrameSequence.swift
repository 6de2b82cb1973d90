/// The frames of an original that a recipe decodes: one, or several of an animation.
///
/// Read the frames in order and finish each one before starting the next: they are decoded on demand, and only the
/// current one is in memory.
struct FrameSequence {
    /// All frames, stacked vertically in order.
    private let strip: Image
    let count: Int
    /// nil for a still picture.
    let timing: FrameTiming?

    /// Throws `undecodable` if the file has fewer than `count` frames.
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
                .undecodable, "the animation has fewer frames than the \(count) its header says; it may be cut short")
        }
        // Browsers show a frame for 100 ms if it asks for 10 or less.
        let shown = delays.prefix(count).map { $0 <= 10 ? 100 : $0 }
        timing = FrameTiming(delays: shown, loops: max(0, strip.integer("loop") ?? 0))
    }

    var width: Int { strip.width }
    var height: Int { strip.height / count }

    /// A frame as a separate image, so that no step reads across its edges into the next frame.
    func frame(_ index: Int) throws(RenderError) -> Image {
        if count == 1 { return strip }
        return try strip.area(PixelRectangle(x: 0, y: index * height, width: width, height: height))
    }
}

extension Recipe {
    /// How many frames a render of this recipe decodes.
    ///
    /// More than one only if `frames` asks for it, the original is an animated GIF or WebP, and the output is GIF or
    /// WebP too. Other outputs use the first frame.
    package func decodedFrames(of header: ImageHeader, into format: ImageFormat) -> Int {
        guard header.format.holdsFrames, format.holdsFrames else { return 1 }
        switch frames {
        case .first: return 1
        case .all: return max(1, header.pages)
        case .count(let count): return max(1, min(count, header.pages))
        }
    }
}
