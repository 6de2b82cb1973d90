/// How many parts of each kind a file may have. Decoders look at every part, some in quadratic time, so a tiny picture
/// of many parts could take minutes. Encoders stay far below these numbers.
enum HeaderParts {
    /// Segments of a JPEG. A segment holds 64 kB, so this suffices for 256 MB of metadata.
    static let segments = 4096
    /// Chunks of a PNG or WebP, including frames of an animated WebP, without the chunks that hold a still picture's pixels.
    static let chunks = 10_000
    /// IDAT and fdAT chunks of a PNG, which most encoders fill with 8 kB or more.
    static let dataChunks = 100_000
    /// Frames and extensions of a GIF.
    static let blocks = 100_000
    /// Directories of a TIFF.
    static let directories = 10_000
    /// Boxes of an AVIF, HEIF or JPEG XL, at the top or in one box. The bounds of libheif are above this one.
    static let boxes = 10_000
    /// Counting stops here, so that it takes milliseconds.
    static let mostCounted = 200_000

    /// Throws `overLimit` if there are more than `most`.
    static func check(_ format: String, _ count: Int, _ parts: String, most: Int) throws(RenderError) {
        guard count > most else { return }
        throw RenderError(
            .overLimit,
            "\(format) with \(count)\(count < mostCounted ? "" : " or more") \(parts), and at most \(most) are read: "
                + "save the picture again, without its metadata")
    }
}
