/// Decodes SVG with librsvg, which draws at the requested size. librsvg runs no scripts. It opens no other files,
/// because the document is passed without a base URL.
enum SVGDecoder: OriginalDecoder {
    static let format = ImageFormat.svg
    static let loader = "svgload_buffer"
    static let isOnByDefault = false
    static let isForWorkersOnly = true
    static let isDrawing = true
    static let packages = (debian12: "libvips42 with librsvg2-2", debian13: "libvips42t64 with librsvg2-2")

    static func recognizes(_ file: ByteReader) -> Bool { SVGDocument.isRoot(of: file) }
    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double { 100 }
    static func drawnBits(_ file: ByteReader) -> Double? { .infinity }

    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        guard let document = SVGDocument(file) else {
            throw ImageHeader.damaged(
                "SVG", "its root element is truncated, or longer than \(SVGDocument.rootLimit) bytes")
        }
        guard document.width > 0, document.height > 0 else { throw ImageHeader.damaged("SVG", "its size is zero") }
        // Larger sizes are always rejected.
        func pixels(_ edge: Double) -> Int { max(1, Int(min(edge, 33_554_432).rounded())) }
        let (width, height) = (pixels(document.width), pixels(document.height))
        try ImageHeader.checkSize("SVG", width, height)
        try document.check()
        return ImageHeader(format: .svg, encodedWidth: width, encodedHeight: height, hasAlpha: true)
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        var details = ImageDetails(colorSpace: "RGB", bitDepth: 8)
        details.unsupportedFeatures = SVGDocument(file).map { SVGRewriting($0).unsupported.sorted() } ?? []
        return details
    }

    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image {
        let header = try header(ByteReader(bytes))
        guard let file = redrawn(bytes, PixelSize(width: header.encodedWidth, height: header.encodedHeight)) else {
            throw ImageHeader.damaged("SVG", "its root element is truncated")
        }
        // The size of the root is in pixels. libvips would also scale this size at other resolutions.
        return try load(.stored(file), [])
    }

    static func redrawn(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize) -> PixelStorage? {
        guard let document = SVGDocument(ByteReader(bytes)) else { return nil }
        guard let rewritten = SVGRewriting(document).bytes else { return document.sized(size) }
        return SVGDocument(ByteReader(rewritten.bytes))?.sized(size)
    }
}
