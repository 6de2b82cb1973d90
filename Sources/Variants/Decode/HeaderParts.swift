/// The maximum number of parts of each kind in a file. Decoders examine every part, some of them in quadratic time, so
/// a tiny picture with many parts could take minutes. Files from encoders are far below these limits.
enum HeaderParts {
    /// The maximum number of segments in a JPEG. A segment holds 64 kB, so this is sufficient for 256 MB of metadata.
    static let segments = 4096
    /// The maximum number of chunks in a PNG or WebP. Includes the frames of an animated WebP, but not the chunks with
    /// the pixels of a still picture.
    static let chunks = 10_000
    /// The maximum number of IDAT and fdAT chunks in a PNG. Most encoders write chunks of at least 8 kB.
    static let dataChunks = 100_000
    /// The maximum number of frames and extensions in a GIF.
    static let blocks = 100_000
    /// The maximum number of directories in a TIFF.
    static let directories = 10_000
    /// The maximum number of boxes at one level in an AVIF, HEIF or JPEG XL file. The limits of libheif are higher.
    static let boxes = 10_000
    /// The maximum number of tiles in a JPEG 2000. OpenJPEG keeps about 10 kB per tile.
    static let tiles = 10_000
    /// The number at which counting stops, so that counting takes only milliseconds.
    static let maxCounted = 200_000

    /// Throws `overLimit` if `count` is greater than `most`.
    static func check(_ format: String, _ count: Int, _ parts: String, most: Int) throws(RenderError) {
        guard count > most else { return }
        throw RenderError(
            .overLimit,
            "the \(format) has \(count)\(count < maxCounted ? "" : " or more") \(parts), but the maximum is \(most); "
                + "save the picture again without metadata")
    }
}
