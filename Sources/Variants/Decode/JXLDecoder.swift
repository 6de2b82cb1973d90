/// JPEG XL, decoded only if a setting names it, because few originals use it, and in workers only: libjxl 0.7 does not
/// check its allocations and corrupts its heap if one fails.
enum JXLDecoder: OriginalDecoder {
    static let format = ImageFormat.jxl
    static let isOnByDefault = false
    static let isForWorkersOnly = true
    static let loader = "jxlload_buffer"
    static let packages = (debian12: "libvips42 with libjxl0.7", debian13: "libvips42t64 with libjxl0.11")

    static func recognises(_ file: ByteReader) -> Bool { JXLHeader.isJXL(file) }
    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double { 40 }
    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader { try JXLHeader.parse(file) }
    static func details(_ file: ByteReader) -> ImageDetails { JXLHeader.details(file) }

    /// Rejects a picture that may not fit in memory. Measured from 1 to 48 megapixels libjxl needs 5 to 20 bytes a
    /// pixel, up to 45 with alpha or over 8 bits.
    static func checkMemory(_ image: Image) throws(RenderError) {
        let isPlain = image.format == 0 && !image.hasAlpha  // VIPS_FORMAT_UCHAR
        let needed = image.width * image.height * (isPlain ? 24 : 48) + 16 << 20
        if AddressSpace.hasRoom(for: needed) { return }
        throw RenderError(
            .overLimit,
            "decoding \(image.width) × \(image.height) pixels of JPEG XL takes up to \(needed / 1_000_000) MB, which is more than "
                + "limits.workerMemory leaves; raise that, or convert the picture")
    }
}
