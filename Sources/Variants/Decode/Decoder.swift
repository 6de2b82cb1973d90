/// Opens encoded bytes with the loader of a known format. libvips never guesses the format, because its own sniffing
/// hangs on some files.
enum Decoder {
    /// Opens `bytes`, which must stay valid as long as the image. Pixels are decoded on demand, top to bottom only.
    /// With `frames` above 1 the image holds that many frames of a GIF or WebP, stacked vertically and composited as a
    /// viewer shows them.
    static func open(
        _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat, shrink: Int = 1, frames: Int = 1
    ) throws(RenderError) -> Image {
        if bytes.isEmpty { throw RenderError(.notAnImage, "the image data is empty") }
        switch format {
        case .jpeg:
            return try VipsCall(
                "jpegload_buffer",
                [
                    "buffer": JPEGScans.completed(bytes).map { .stored($0) } ?? .bytes(bytes), "shrink": .int(shrink),
                    "access": "sequential", "fail-on": "truncated",
                ]
            ).image()
        case .webp:
            return try VipsCall(
                "webpload_buffer",
                [
                    "buffer": .bytes(bytes), "scale": .double(1 / Double(shrink)), "n": .int(frames),
                    "access": "sequential", "fail-on": "truncated",
                ]
            ).image()
        case .png: return try plain("pngload_buffer", bytes)
        case .gif:
            return try VipsCall(
                "gifload_buffer",
                ["buffer": .bytes(bytes), "n": .int(frames), "access": "sequential", "fail-on": "truncated"]
            ).image()
        case .tiff: return try plain("tiffload_buffer", bytes)
        case .avif, .heif: return try plain("heifload_buffer", bytes)
        case .jxl:
            let image = try plain("jxlload_buffer", bytes)
            try checkMemory(image)
            return image
        case .svg:
            throw RenderError(.unsupportedFormat, "\(format.rawValue) originals are not supported")
        }
    }

    /// Rejects a picture that may not fit in memory: libjxl 0.7 does not check its allocations and corrupts the heap if
    /// one fails. Measured from 1 to 48 megapixels it needs 5 to 20 bytes a pixel, up to 45 with alpha or over 8 bits.
    private static func checkMemory(_ image: Image) throws(RenderError) {
        let isPlain = image.format == 0 && !image.hasAlpha  // VIPS_FORMAT_UCHAR
        let needed = image.width * image.height * (isPlain ? 24 : 48) + 16 << 20
        if AddressSpace.hasRoom(for: needed) { return }
        throw RenderError(
            .overLimit,
            "decoding \(image.width) × \(image.height) pixels of JPEG XL takes up to \(needed / 1_000_000) MB, which is more than "
                + "limits.workerMemory leaves; raise that, or convert the picture")
    }

    private static func plain(_ loader: String, _ bytes: UnsafeRawBufferPointer) throws(RenderError) -> Image {
        if !VipsLibrary.has(loader) {
            throw RenderError(.unsupportedFormat, "this libvips has no \(loader)")
        }
        return try VipsCall(
            loader, ["buffer": .bytes(bytes), "access": "sequential", "fail-on": "truncated"]
        ).image()
    }

    /// Rejects an image whose decoder reports another size than the header, which limits were checked against.
    static func check(
        _ image: Image, _ header: ImageHeader, shrink: Int, frames: Int = 1
    ) throws(RenderError) {
        let isRotated = header.format == .heif || header.format == .avif
        let slack = shrink > 1 ? 1 : 0
        func agrees(_ width: Int, _ height: Int) -> Bool {
            abs(image.width - max(1, width / shrink)) <= slack
                && abs(image.height - max(1, height / shrink) * frames) <= slack
        }
        // libvips' WebP loader returns the frames of an animation at full size, whatever scale is requested.
        let isWhole = header.format == .webp && image.width == header.width && image.height == header.height
        guard isWhole || agrees(header.width, header.height) || (isRotated && agrees(header.height, header.width))
        else {
            throw RenderError(
                .undecodable,
                "the header says \(header.width) × \(header.height) pixels, the decoder \(image.width) × \(image.height)"
                    + (shrink > 1 ? " at 1/\(shrink)" : ""))
        }
    }
}
