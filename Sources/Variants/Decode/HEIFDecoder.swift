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

    /// The decoder may or may not have turned the picture as its container says.
    static func accepts(_ image: Image, for header: ImageHeader, shrink: Int, frames: Int) -> Bool {
        isSize(of: image, header.width, header.height, shrink: shrink, frames: frames)
            || isSize(of: image, header.height, header.width, shrink: shrink, frames: frames)
    }
}
