/// Finished pixels on their way into a file: 8 bits, 3 bands or 4 with alpha, rows without padding.
struct EncodablePixels: Sendable {
    /// One frame, or all of an animation, each below the one before.
    let storage: PixelStorage
    let width: Int
    /// The height of one frame.
    let height: Int
    let bands: Int
    /// nil for a still picture.
    var timing: FrameTiming?

    init(storage: PixelStorage, width: Int, height: Int, bands: Int, timing: FrameTiming? = nil) {
        self.storage = storage
        self.width = width
        self.height = height
        self.bands = bands
        self.timing = timing
    }

    var frameCount: Int { timing?.delays.count ?? 1 }

    /// The bytes of one frame.
    func frame(_ index: Int) -> UnsafeRawBufferPointer {
        let size = width * height * bands
        return UnsafeRawBufferPointer(rebasing: storage.bytes[(index * size)..<((index + 1) * size)])
    }

    /// All frames as one libvips image.
    func image() throws(RenderError) -> Image {
        try Image(storage, width: width, height: height * frameCount, bands: bands)
            .labelled(bands < 3 ? "b-w" : "srgb")
    }

    /// Without the alpha band where it is opaque everywhere: smaller files, and formats without alpha suffice.
    func droppingOpaqueAlpha() -> EncodablePixels {
        let bytes = storage.bytes
        guard bands == 4, stride(from: 3, to: bytes.count, by: 4).allSatisfy({ bytes[$0] == 255 }) else { return self }
        let opaque = [UInt8](unsafeUninitializedCapacity: bytes.count / 4 * 3) { buffer, count in
            var to = 0
            for from in stride(from: 0, to: bytes.count, by: 4) {
                buffer[to] = bytes[from]
                buffer[to + 1] = bytes[from + 1]
                buffer[to + 2] = bytes[from + 2]
                to += 3
            }
            count = to
        }
        return EncodablePixels(storage: PixelStorage(opaque), width: width, height: height, bands: 3, timing: timing)
    }
}

/// When the frames of an animation are shown.
struct FrameTiming: Sendable, Hashable {
    /// Milliseconds each frame stays, ≥ 0; one a frame.
    var delays: [Int]
    /// How often the animation plays in all; 0 is for ever.
    var loops: Int
}
