/// One format of originals: how its files are recognised, what they say about their picture, and how they are opened.
///
/// A conforming type has one file here, one line in `Catalogue.decoders`, and tests. Files are recognised and their
/// headers read in the front process, from untrusted bytes and without libvips.
protocol OriginalDecoder: Sendable {
    /// The format, and its name in the setting `decoders`.
    static var format: ImageFormat { get }
    /// Whether originals of this format are decoded unless the setting `decoders` says otherwise.
    static var isOnByDefault: Bool { get }
    /// Whether they are decoded in render workers only, unless a caller names the format.
    static var isForWorkersOnly: Bool { get }

    /// Whether a file begins with the format's magic bytes.
    static func recognises(_ file: ByteReader) -> Bool
    /// Reads the header. Throws `undecodable` if it is damaged or cut short.
    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader
    /// What the file says beyond its header, for display. Damaged details are nil.
    static func details(_ file: ByteReader) -> ImageDetails

    /// The libvips operation that opens the format.
    static var loader: String { get }
    /// The Debian packages that bring what it needs.
    static var packages: (debian12: String, debian13: String) { get }
    /// How much smaller than stored the decoder makes each edge if a picture is to be `factor` times smaller; 1 if it
    /// decodes in full.
    static func shrink(_ factor: Double, _ quality: RenderQuality) -> Int
    /// Roughly the CPU time that decoding takes, in nanoseconds a pixel (`RenderWork`).
    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double
    /// Whether pictures are drawn at any size, instead of resized.
    static var isDrawing: Bool { get }
    /// The file of a drawing, with another size.
    static func redrawn(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize) -> PixelStorage?
    /// Whether a decoder that shrinks averages squares of pixels, of which the last ones may reach beyond the picture.
    static var averagesSquares: Bool { get }
    /// Bits a pixel that a file of a drawing takes at most; nil for one that is stored with loss, or not compressed.
    static func drawnBits(_ file: ByteReader) -> Double?
    /// The bytes as the loader gets them, and the damage at which it fails (libvips' `fail_on`).
    static func source(_ bytes: UnsafeRawBufferPointer) -> (bytes: VipsArgument, failOn: String)
    /// The loader's own arguments.
    static func options(shrink: Int, frames: Int) -> [(String, VipsArgument)]
    /// Opens bytes that are not empty: pixels are decoded on demand, top to bottom only.
    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image
    /// Whether `openDamaged` can be used.
    static var readsDamaged: Bool { get }
    /// Opens a file that lacks pixels, which are then of any colour.
    static func openDamaged(_ bytes: UnsafeRawBufferPointer, shrink: Int) throws(RenderError) -> Image
    /// The bytes of a file that could not be decoded, with what surrounds its pixels repaired; nil if pixels are
    /// missing, or nothing is known to be wrong.
    static func mended(_ bytes: UnsafeRawBufferPointer) -> PixelStorage?
    /// Bytes of memory that the file, its copies and its decoded picture take at most, besides a number of rows; `count`
    /// is the file's length.
    static func memory(_ header: ImageHeader, shrink: Int, count: Int) -> Int
    /// Rejects a picture, opened but not decoded, that may not fit in memory.
    static func checkMemory(_ image: Image) throws(RenderError)
    /// Whether the decoder's image has the size that the header promised, which limits were checked against.
    static func accepts(_ image: Image, for header: ImageHeader, shrink: Int, frames: Int) -> Bool
}

extension OriginalDecoder {
    static var isOnByDefault: Bool { true }
    static var isForWorkersOnly: Bool { false }
    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double { 15 }
    static var packages: (debian12: String, debian13: String) { ("libvips42", "libvips42t64") }
    static var isDrawing: Bool { false }
    static func redrawn(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize) -> PixelStorage? { nil }
    static var averagesSquares: Bool { false }
    static func drawnBits(_ file: ByteReader) -> Double? { nil }
    static func shrink(_ factor: Double, _ quality: RenderQuality) -> Int { 1 }
    static func source(_ bytes: UnsafeRawBufferPointer) -> (bytes: VipsArgument, failOn: String) {
        (.bytes(bytes), "truncated")
    }
    static func options(shrink: Int, frames: Int) -> [(String, VipsArgument)] { [] }
    static func memory(_ header: ImageHeader, shrink: Int, count: Int) -> Int { count + header.heldBytes }
    static func checkMemory(_ image: Image) throws(RenderError) {}
    static func mended(_ bytes: UnsafeRawBufferPointer) -> PixelStorage? { nil }
    static var readsDamaged: Bool { false }
    static func openDamaged(_ bytes: UnsafeRawBufferPointer, shrink: Int) throws(RenderError) -> Image {
        try open(bytes, shrink: shrink, frames: 1)
    }

    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image {
        let (source, failOn) = source(bytes)
        return try load(source, failOn: failOn, options(shrink: shrink, frames: frames))
    }

    /// Opens `source` with the loader.
    static func load(
        _ source: VipsArgument, failOn: String = "truncated", _ options: [(String, VipsArgument)]
    ) throws(RenderError) -> Image {
        let arguments: [(String, VipsArgument)] = [
            ("buffer", source), ("access", "sequential"), ("fail-on", .string(failOn)),
        ]
        return try VipsCall(nickname: loader, arguments: arguments + options).image()
    }

    /// Whether the content of a JUMBF superbox begins with the description of content credentials.
    static func isCredentials(_ superbox: ByteReader) -> Bool {
        superbox.matches("jumd", at: 4) && superbox.matches("c2pa", at: 8)
    }

    static func accepts(_ image: Image, for header: ImageHeader, shrink: Int, frames: Int) -> Bool {
        isSize(of: image, header.width, header.height, shrink: shrink, frames: frames)
    }

    /// Whether an image has this size, divided by `shrink`: rounded either way, since decoders differ.
    static func isSize(of image: Image, _ width: Int, _ height: Int, shrink: Int, frames: Int) -> Bool {
        let slack = shrink > 1 ? 1 : 0
        return abs(image.width - max(1, width / shrink)) <= slack
            && abs(image.height - max(1, height / shrink) * frames) <= slack
    }
}

/// Opens encoded bytes with the loader of a known format. libvips never guesses the format, because its own sniffing
/// hangs on some files.
enum Decoding {
    /// Opens `bytes`, which must stay valid as long as the image. Pixels are decoded on demand, top to bottom only.
    /// With `frames` above 1 the image holds that many frames of an animation, stacked vertically and composited as a
    /// viewer shows them. If `isDamaged`, pixels may be missing, and what is there is decoded.
    static func open(
        _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat, shrink: Int = 1, frames: Int = 1,
        isDamaged: Bool = false
    ) throws(RenderError) -> Image {
        if bytes.isEmpty { throw RenderError(.notAnImage, "the image data is empty") }
        guard let decoder = format.decoder else {
            throw RenderError(.unsupportedFormat, "\(format) originals are not supported")
        }
        try RenderLibraries.loaded.checkReads(format)
        // Warnings of pictures decoded before would be taken for the reason of a failure.
        _ = VipsLibrary.takeErrorText()
        let image =
            try isDamaged
            ? decoder.openDamaged(bytes, shrink: shrink) : decoder.open(bytes, shrink: shrink, frames: frames)
        try decoder.checkMemory(image)
        return try image.withUnsignedSamples()
    }

    /// The same for bytes whose header is known. Throws `undecodable` if the decoder reports another size.
    static func open(
        _ bytes: UnsafeRawBufferPointer, _ header: ImageHeader, shrink: Int = 1, frames: Int = 1,
        isDamaged: Bool = false
    ) throws(RenderError) -> Image {
        let image = try open(bytes, header.format, shrink: shrink, frames: frames, isDamaged: isDamaged)
        if header.format.decoder?.accepts(image, for: header, shrink: shrink, frames: frames) == true { return image }
        throw RenderError(
            .undecodable,
            "the header says \(header.width) × \(header.height) pixels, the decoder \(image.width) × \(image.height)"
                + (shrink > 1 ? " at 1/\(shrink)" : ""))
    }
}
