import CVips

/// What AVIF and HEIF have in common: the container, and libheif, which has had flaws that let a picture take over the
/// decoding process (GHSA-g89c-p67h-r497).
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

    static func recognises(_ file: ByteReader) -> Bool { HEIFHeader.format(file) == format }
    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        try HEIFHeader.parse(file, format: format)
    }
    static func details(_ file: ByteReader) -> ImageDetails { HEIFHeader.details(file) }

    static func source(_ bytes: UnsafeRawBufferPointer) -> (bytes: VipsArgument, failOn: String) {
        let aligned = HEIFHeader.withAlignedAlpha(ByteReader(bytes))
        return (aligned.map { .stored(PixelStorage($0)) } ?? .bytes(bytes), "truncated")
    }

    /// Divides colours by alpha if they are stored multiplied by it; an ICC profile comes before `nclx`.
    static func completed(_ image: Image, _ file: ByteReader) throws(RenderError) -> Image {
        var result = image
        if let alpha = HEIFHeader.Alpha(file) {
            guard image.hasAlpha else {
                throw RenderError(
                    .undecodable, "its transparency has another size than its colours; convert the picture")
            }
            if alpha.isPremultiplied {
                let isWide = image.format == Int(CVIPS_FORMAT_USHORT)
                result = try VipsCall("unpremultiply", ["in": .image(image), "max-alpha": isWide ? 65535 : 255]).image()
                    .linear([1], [0.5]).cast(to: isWide ? "ushort" : "uchar")
            }
        }
        return try ColourConversion.described(result) { $0 ? nil : HEIFHeader.colour(file) }
    }

    /// The decoder may or may not have turned the picture as its container says.
    static func accepts(_ image: Image, for header: ImageHeader, shrink: Int, frames: Int) -> Bool {
        isSize(of: image, header.width, header.height, shrink: shrink, frames: frames)
            || isSize(of: image, header.height, header.width, shrink: shrink, frames: frames)
    }
}
