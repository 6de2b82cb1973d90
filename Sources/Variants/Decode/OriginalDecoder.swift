/// Describes a format of originals: how to recognize its files, read their headers, and open them.
///
/// A conforming type has one file in this folder, one line in `Catalog.decoders`, and tests. Files are recognized and
/// their headers are read in the front process, from untrusted bytes and without libvips.
protocol OriginalDecoder: Sendable {
    /// The format. The `decoders` setting uses the name of this format.
    static var format: ImageFormat { get }
    /// Whether originals of this format are decoded by default. The `decoders` setting overrides this.
    static var isOnByDefault: Bool { get }
    /// Whether the format is decoded only in render workers, unless a caller names the format.
    static var isForWorkersOnly: Bool { get }

    /// Whether a file begins with the magic bytes of the format.
    static func recognizes(_ file: ByteReader) -> Bool
    /// Reads the header. Throws `undecodable` if the header is damaged or truncated.
    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader
    /// Returns details for display that are not part of the header. Damaged details are nil.
    static func details(_ file: ByteReader) -> ImageDetails

    /// The libvips operation that opens the format.
    static var loader: String { get }
    /// The Debian packages that provide the required libraries.
    static var packages: (debian12: String, debian13: String) { get }
    /// Returns the factor by which the decoder shrinks each edge if the picture is reduced by `factor` in total.
    /// Returns 1 for a full decode.
    static func shrink(_ factor: Double, _ quality: RenderQuality) -> Int
    /// Returns the approximate CPU time of decoding, in nanoseconds per pixel (`RenderWork`).
    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double
    /// Whether pictures are vector drawings, which are drawn at any size instead of being resized.
    static var isDrawing: Bool { get }
    /// Returns the file of a vector drawing with a different size.
    static func redrawn(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize) -> PixelStorage?
    /// Whether a shrinking decoder averages squares of pixels. The last squares may extend beyond the picture.
    static var averagesSquares: Bool { get }
    /// Returns the maximum number of bits per pixel in the file of a drawing. Returns nil if the file is lossy or not
    /// compressed.
    static func drawnBits(_ file: ByteReader) -> Double?
    /// Returns the bytes for the loader, and the level of damage at which the loader fails (libvips' `fail_on`).
    static func source(_ bytes: UnsafeRawBufferPointer) -> (bytes: VipsArgument, failOn: String)
    /// Returns the additional arguments of the loader.
    static func options(shrink: Int, frames: Int) -> [(String, VipsArgument)]
    /// Opens a file that is not empty. Pixels are decoded on demand, and only from top to bottom.
    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image
    /// Opens a page of a document, starting at 1.
    static func open(_ bytes: UnsafeRawBufferPointer, page: Int, shrink: Int) throws(RenderError) -> Image
    /// Whether `openDamaged` is supported.
    static var readsDamaged: Bool { get }
    /// Opens a file with missing pixels. The missing pixels have arbitrary colors.
    static func openDamaged(_ bytes: UnsafeRawBufferPointer, shrink: Int) throws(RenderError) -> Image
    /// Returns a repaired copy of a file that could not be decoded. The repair covers only the structure around the
    /// pixels. Returns nil if pixels are missing, or if no known defect was found.
    static func repaired(_ bytes: UnsafeRawBufferPointer) -> PixelStorage?
    /// Returns the maximum number of bytes for the file, its copies and its decoded picture, not including row buffers.
    /// `count` is the length of the file.
    static func memory(_ header: ImageHeader, shrink: Int, count: Int) -> Int
    /// Throws if a picture that is opened but not decoded may not fit in memory.
    static func checkMemory(_ image: Image) throws(RenderError)
    /// Whether the size of the decoder's image matches the header, which was checked against the limits.
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
    static func repaired(_ bytes: UnsafeRawBufferPointer) -> PixelStorage? { nil }
    static var readsDamaged: Bool { false }
    static func openDamaged(_ bytes: UnsafeRawBufferPointer, shrink: Int) throws(RenderError) -> Image {
        try open(bytes, shrink: shrink, frames: 1)
    }

    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image {
        let (source, failOn) = source(bytes)
        return try load(source, failOn: failOn, options(shrink: shrink, frames: frames))
    }

    static func open(_ bytes: UnsafeRawBufferPointer, page: Int, shrink: Int) throws(RenderError) -> Image {
        throw RenderError(.notApplicable, "`page:\(page)`: pages of \(format.title) originals cannot be selected")
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
        isSize(of: image, header.encodedWidth, header.encodedHeight, shrink: shrink, frames: frames)
    }

    /// Whether an image has this size divided by `shrink`. Accepts both ways of rounding, because decoders differ.
    static func isSize(of image: Image, _ width: Int, _ height: Int, shrink: Int, frames: Int) -> Bool {
        let slack = shrink > 1 ? 1 : 0
        return abs(image.width - max(1, width / shrink)) <= slack
            && abs(image.height - max(1, height / shrink) * frames) <= slack
    }
}

/// Opens encoded bytes with the loader of a known format. libvips must not detect the format, because its detection
/// hangs on some files.
enum Decoding {
    /// Opens `bytes`, which must stay valid for as long as the image is in use. Pixels are decoded on demand, and only
    /// from top to bottom. If `frames` is greater than 1, the image contains that many frames of an animation, stacked
    /// vertically and composited as in a viewer. If `isDamaged` is true, pixels may be missing, and the available part
    /// is decoded.
    static func open(
        _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat, page: Int = 1, shrink: Int = 1, frames: Int = 1,
        isDamaged: Bool = false
    ) throws(RenderError) -> Image {
        if bytes.isEmpty { throw RenderError(.notAnImage, "the image data is empty") }
        guard let decoder = format.decoder else {
            throw RenderError(.unsupportedFormat, "\(format) originals are not supported")
        }
        try RenderLibraries.loaded.checkReads(format)
        // Clear the buffer, because old warnings would otherwise be reported as the reason for a failure.
        _ = VipsLibrary.takeErrorText()
        let image =
            try page > 1
            ? decoder.open(bytes, page: page, shrink: shrink)
            : isDamaged
                ? decoder.openDamaged(bytes, shrink: shrink) : decoder.open(bytes, shrink: shrink, frames: frames)
        try decoder.checkMemory(image)
        return try image.withUnsignedSamples()
    }

    /// Opens bytes with a known header. Throws `undecodable` if the decoder reports a different size.
    static func open(
        _ bytes: UnsafeRawBufferPointer, _ header: ImageHeader, page: Int = 1, shrink: Int = 1, frames: Int = 1,
        isDamaged: Bool = false
    ) throws(RenderError) -> Image {
        let image = try open(bytes, header.format, page: page, shrink: shrink, frames: frames, isDamaged: isDamaged)
        if header.format.decoder?.accepts(image, for: header, shrink: shrink, frames: frames) == true { return image }
        throw RenderError(
            .undecodable,
            "the size in the header is \(header.sizeText), but the decoded size is \(image.width) × \(image.height)"
                + (shrink > 1 ? " at 1/\(shrink)" : ""))
    }
}
