import CVips

/// Decodes JPEG XL. Disabled by default because few originals use the format. It is used only in workers, because
/// libjxl 0.7 does not check its allocations and corrupts its heap if an allocation fails.
enum JXLDecoder: OriginalDecoder {
    static let format = ImageFormat.jxl
    static let isOnByDefault = false
    static let isForWorkersOnly = true
    static let loader = "jxlload_buffer"
    static let packages = (debian12: "libvips42 with libjxl0.7", debian13: "libvips42t64 with libjxl0.11")

    static func recognizes(_ file: ByteReader) -> Bool { JXLHeader.isJXL(file) }
    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double { 40 }
    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader { try JXLHeader.parse(file) }
    static func details(_ file: ByteReader) -> ImageDetails { JXLHeader.details(file) }

    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image {
        let found = try JXLHeader.read(ByteReader(bytes))
        var image = try firstFrame(bytes, isAnimated: found.isAnimated)
        if found.isPremultiplied, image.hasAlpha { image = try image.dividedByAlpha() }
        guard let color = found.hdr else { return image }
        return try ColorConversion.described(image.withUnsignedSamples()) { _ in color }
    }

    /// The file of the loaded libjxl.
    static var library: String? { RenderLibraries.loaded.files.first { $0.contains("/libjxl.so") } }

    /// Decodes the first frame without libvips, because libvips shows the last frame of an animation.
    private static func firstFrame(
        _ bytes: UnsafeRawBufferPointer, isAnimated: Bool
    ) throws(RenderError) -> Image {
        let image = try load(.bytes(bytes), [])
        guard isAnimated, let start = bytes.baseAddress, let library else { return image }
        try checkMemory(image)
        let pixels = PixelStorage(byteCount: image.width * image.height * 4)
        let target = pixels.mutableBytes
        guard let rgba = target.baseAddress,
            cvips_jxl_first_frame(library, start, bytes.count, rgba, target.count) == 1
        else { throw RenderError(.undecodable, "the first frame of the JPEG XL animation cannot be decoded") }
        let frame = try Image(pixels, width: image.width, height: image.height, bands: 4).labeled("srgb")
        frame.copy("icc-profile-data", "exif-data", "xmp-data", from: image)
        return frame
    }

    /// Returns the memory that libjxl needs per pixel. Pictures of 1 to 48 megapixels needed 5 to 20 bytes per pixel,
    /// or up to 45 bytes with alpha or more than 8 bits.
    static func bytesPerPixel(isPlain: Bool) -> Double { isPlain ? 24 : 48 }

    /// Throws if the picture may not fit in the remaining memory. The estimate from the header does not take the
    /// remaining memory into account.
    static func checkMemory(_ image: Image) throws(RenderError) {
        let isPlain = image.format == 0 && !image.hasAlpha  // VIPS_FORMAT_UCHAR
        let needed = Int(Double(image.width * image.height) * bytesPerPixel(isPlain: isPlain)) + 16 << 20
        if AddressSpace.hasRoom(for: needed) { return }
        throw RenderError(
            .overLimit,
            "decoding \(image.width) × \(image.height) pixels of JPEG XL takes up to \(needed / 1_000_000) MB, more than "
                + "limits.workerMemory allows; raise this limit, or convert the picture")
    }
}
