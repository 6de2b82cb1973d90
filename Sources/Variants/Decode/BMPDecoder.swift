/// Decodes BMP files of Windows and OS/2 with our own code (`DeviceBitmap`).
enum BMPDecoder: OriginalDecoder {
    static let format = ImageFormat.bmp
    /// Our own code decodes the pixels. libvips only receives the result.
    static let loader = "copy"

    static func recognizes(_ file: ByteReader) -> Bool {
        // Check the length of the bitmap's header, because text may also begin with these letters.
        file.matches("BM") && (file.uint32(14, .little) ?? 256) < 256
    }

    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double { 5 }

    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        let bitmap = try bitmap(file)
        var header = ImageHeader(
            format: .bmp, encodedWidth: bitmap.width, encodedHeight: bitmap.height, hasAlpha: bitmap.hasAlpha,
            profileBytes: bitmap.profile.count, hasFewColors: bitmap.bits <= 8)
        header.hold(bytesPerPixel: bitmap.hasAlpha ? 4 : 3)
        return header
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        // `ImageHeader.probe` has already reported errors in the header.
        let profile = (try? bitmap(file))?.profile
        return ImageDetails(
            colorSpace: "RGB", bitDepth: 8, profileName: profile.flatMap { $0.count > 0 ? ProfileName.read($0) : nil })
    }

    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image {
        try bitmap(ByteReader(bytes)).image()
    }

    private static func bitmap(_ file: ByteReader) throws(RenderError) -> DeviceBitmap {
        try DeviceBitmap(file, at: 14, lines: file.uint32(10, .little) ?? 0)
    }
}
