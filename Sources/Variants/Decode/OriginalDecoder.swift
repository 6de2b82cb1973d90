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
    /// Whether a decoder that shrinks leaves out the remainder, smaller than a square that it averages, at the right and
    /// the bottom.
    static var cropsAveragedSquares: Bool { get }
    /// Milliseconds for which viewers show a frame whose delay is 0.
    static var zeroDelay: Int { get }
    /// The bytes as the loader gets them, and the damage at which it fails (libvips' `fail_on`).
    static func source(_ bytes: UnsafeRawBufferPointer) -> (bytes: VipsArgument, failOn: String)
    /// The loader's own arguments.
    static func options(shrink: Int, frames: Int) -> [(String, VipsArgument)]
    /// The picture as the file means it, if the loader does not know all that the file says of colours and alpha.
    static func completed(_ image: Image, _ file: ByteReader) throws(RenderError) -> Image
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
    static var cropsAveragedSquares: Bool { false }
    static var zeroDelay: Int { 0 }
    static func shrink(_ factor: Double, _ quality: RenderQuality) -> Int { 1 }
    static func source(_ bytes: UnsafeRawBufferPointer) -> (bytes: VipsArgument, failOn: String) {
        (.bytes(bytes), "truncated")
    }
    static func options(shrink: Int, frames: Int) -> [(String, VipsArgument)] { [] }
    static func completed(_ image: Image, _ file: ByteReader) throws(RenderError) -> Image { image }
    static func checkMemory(_ image: Image) throws(RenderError) {}

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
    /// viewer shows them.
    static func open(
        _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat, shrink: Int = 1, frames: Int = 1
    ) throws(RenderError) -> Image {
        if bytes.isEmpty { throw RenderError(.notAnImage, "the image data is empty") }
        guard let decoder = format.decoder else {
            throw RenderError(.unsupportedFormat, "\(format) originals are not supported")
        }
        try RenderLibraries.loaded.checkReads(format)
        let source = decoder.source(bytes)
        let arguments: [(String, VipsArgument)] = [
            ("buffer", source.bytes), ("access", "sequential"), ("fail-on", .string(source.failOn)),
        ]
        let options = decoder.options(shrink: shrink, frames: frames)
        let image = try VipsCall(nickname: decoder.loader, arguments: arguments + options).image()
        try decoder.checkMemory(image)
        return image
    }

    /// The same for bytes whose header is known, completed. Throws `undecodable` if the decoder reports another size.
    static func open(
        _ bytes: UnsafeRawBufferPointer, _ header: ImageHeader, shrink: Int = 1, frames: Int = 1
    ) throws(RenderError) -> Image {
        let image = try open(bytes, header.format, shrink: shrink, frames: frames)
        if let decoder = header.format.decoder, decoder.accepts(image, for: header, shrink: shrink, frames: frames) {
            return try decoder.completed(image, ByteReader(bytes))
        }
        throw RenderError(
            .undecodable,
            "the header says \(header.width) × \(header.height) pixels, the decoder \(image.width) × \(image.height)"
                + (shrink > 1 ? " at 1/\(shrink)" : ""))
    }
}
