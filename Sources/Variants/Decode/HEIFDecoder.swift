/// The common parts of AVIF and HEIF: the container and libheif. A vulnerability in libheif allowed pictures to take
/// over the decoding process (GHSA-g89c-p67h-r497).
protocol HEIFContainer: OriginalDecoder {}

enum AVIFDecoder: HEIFContainer {
    static let format = ImageFormat.avif
    static let packages = (debian12: "libvips42 with libheif1", debian13: "libheif-plugin-dav1d")
}

enum HEIFDecoder: HEIFContainer {
    static let format = ImageFormat.heif
    static let packages = (debian12: "libvips42 with libheif1", debian13: "libheif-plugin-libde265")
}

extension HEIFContainer {
    static var isForWorkersOnly: Bool { true }
    static var loader: String { "heifload_buffer" }
    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double { 20 }

    static func recognizes(_ file: ByteReader) -> Bool { HEIFHeader.format(file) == format }
    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        try HEIFHeader.parse(file, format: format)
    }
    static func details(_ file: ByteReader) -> ImageDetails { HEIFHeader.details(file) }

    /// This is the size of the file, three modified copies, and libheif's own copy.
    static func memory(_ header: ImageHeader, shrink: Int, count: Int) -> Int { 5 * count + header.heldBytes }

    /// Divides premultiplied colors by alpha. An ICC profile takes precedence over `nclx`.
    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image {
        let file = ByteReader(bytes)
        let matrix = HEIFHeader.Matrix(file)
        let unmixed = matrix?.unmixed(file)
        func image(_ part: HEIFHeader.Alpha.Part) throws(RenderError) -> Image {
            let changed = HEIFHeader.file(unmixed.map { ByteReader($0.bytes) } ?? file, with: part).map(
                PixelStorage.init)
            let image = try load((changed ?? unmixed).map { .stored($0) } ?? .bytes(bytes), [])
            return try part == .alpha ? image : matrix?.rgb(image) ?? image
        }
        guard let alpha = HEIFHeader.Alpha(file) else {
            return try ColorConversion.described(image(.both)) { $0 ? nil : HEIFHeader.color(file) }
        }
        var result: Image
        if let canBeEnlarged = alpha.canBeEnlarged {
            guard canBeEnlarged else {
                throw RenderError(
                    .undecodable,
                    "its alpha channel is larger than the picture, or the picture is cropped; convert it to another format"
                )
            }
            result = try image(.colors)
            let small = try image(.alpha)
            let scale: [(String, VipsArgument)] = [
                ("in", .image(try small.band(0))), ("scale", .double(Double(result.width) / Double(small.width))),
                ("vscale", .double(Double(result.height) / Double(small.height))), ("kernel", "linear"),
            ]
            let large = try VipsCall(nickname: "resize", arguments: scale).image()
            result = try result.band(0, min(3, result.bands)).joined(alpha: large)
        } else {
            result = try image(.both)
        }
        guard result.hasAlpha else { throw RenderError(.undecodable, "its alpha channel cannot be decoded") }
        if alpha.isPremultiplied { result = try result.dividedByAlpha() }
        return try ColorConversion.described(result) { $0 ? nil : HEIFHeader.color(file) }
    }

    /// Accepts both orientations, because some decoders do not apply the rotation in the container.
    static func accepts(_ image: Image, for header: ImageHeader, shrink: Int, frames: Int) -> Bool {
        isSize(of: image, header.encodedWidth, header.encodedHeight, shrink: shrink, frames: frames)
            || isSize(of: image, header.encodedHeight, header.encodedWidth, shrink: shrink, frames: frames)
    }
}
