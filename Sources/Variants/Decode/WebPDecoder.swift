/// Decodes WebP. Reads the chunks (RFC 9649 §2) VP8X, VP8, VP8L, ALPH, ANMF, EXIF and ICCP.
enum WebPDecoder: OriginalDecoder {
    static let format = ImageFormat.webp
    static let loader = "webpload_buffer"

    static func recognizes(_ file: ByteReader) -> Bool { file.matches("RIFF") && file.matches("WEBP", at: 8) }

    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        if file.matches("VP8X", at: 12) { return try extended(file) }
        guard var header = bitstream(file, at: 12) else {
            throw ImageHeader.damaged("WebP", "its first chunk is not a complete VP8, VP8L or VP8X chunk")
        }
        header.pages = 1
        header.hold(bytesPerPixel: file.matches("VP8L", at: 12) ? heldBytesPerPixel : 0)
        return header
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        var details = ImageDetails(colorSpace: "RGB", bitDepth: 8)
        guard file.matches("VP8X", at: 12) else { return details }
        forEachChunk(file) { type, _, data in
            switch type {
            case "EXIF": details.exif = EXIFSummary(data.withoutExifPrefix)
            case "C2PA": details.hasContentCredentials = true
            case "ICCP": details.profileName = ProfileName.read(data)
            default: break
            }
        }
        return details
    }

    static func shrink(_ factor: Double, _ quality: RenderQuality) -> Int {
        max(1, Int(factor / quality.leftToResampler))
    }

    static func options(shrink: Int, frames: Int) -> [(String, VipsArgument)] {
        [("scale", .double(1 / Double(shrink))), ("n", .int(frames))]
    }

    /// This is the size of the file, and of the decoded frame and the canvas with four bands each.
    static func memory(_ header: ImageHeader, shrink: Int, count: Int) -> Int {
        // libvips does not shrink animations.
        let shrink = header.pages > 1 ? 1 : shrink
        return count + header.heldBytes + 8 * (header.encodedWidth / shrink + 1) * (header.encodedHeight / shrink + 1)
    }

    static func drawnBits(_ file: ByteReader) -> Double? {
        var isLossless = file.matches("VP8L", at: 12)
        if file.matches("VP8X", at: 12) { forEachChunk(file) { type, _, _ in if type == "VP8L" { isLossless = true } } }
        return isLossless ? 4 : nil
    }

    /// The loader of libvips returns the frames of an animation at full size, whatever scale is requested.
    static func accepts(_ image: Image, for header: ImageHeader, shrink: Int, frames: Int) -> Bool {
        image.width == header.encodedWidth && image.height == header.encodedHeight
            || isSize(of: image, header.encodedWidth, header.encodedHeight, shrink: shrink, frames: frames)
    }

    /// The number of bytes per pixel of lossless pixels or alpha, which are decoded completely whatever size is
    /// requested.
    private static let heldBytesPerPixel = 8.0

    private static func extended(_ reader: ByteReader) throws(RenderError) -> ImageHeader {
        guard let flags = reader.byte(20), let width = reader.uint24(24, .little),
            let height = reader.uint24(27, .little)
        else { throw ImageHeader.damaged("WebP", "its VP8X chunk is truncated") }
        // RFC 9649 §2.7.1 requires that the product fits in 32 bits.
        guard (width + 1) * (height + 1) < 1 << 32 else {
            throw ImageHeader.damaged("WebP", "its size is \(width + 1) × \(height + 1)")
        }
        var header = ImageHeader(format: .webp, encodedWidth: width + 1, encodedHeight: height + 1)
        header.hasAlpha = flags & 0x10 != 0
        let isAnimated = flags & 0x02 != 0
        var (frames, chunks) = (0, 0)
        var isHeld = header.hasAlpha
        forEachChunk(reader) { type, offset, data in
            chunks += 1
            guard chunks <= HeaderParts.chunks else { return }
            switch type {
            case "ANMF": frames += 1
            case "ALPH": (header.hasAlpha, isHeld) = (true, true)
            case "VP8L":
                isHeld = true
                if bitstream(reader, at: offset)?.hasAlpha == true { header.hasAlpha = true }
            case "EXIF": header.orientation = TIFFHeader.orientation(exif: data.withoutExifPrefix) ?? 1
            case "ICCP": header.profileBytes = data.count
            default: break
            }
        }
        try HeaderParts.check("WebP", chunks, "chunks", most: HeaderParts.chunks)
        header.pages = isAnimated ? max(1, frames) : 1
        // The frames of an animation are not examined.
        header.hold(bytesPerPixel: isHeld || isAnimated ? heldBytesPerPixel : 0)
        return header
    }

    /// Calls `body` with the chunks after VP8X, at most `HeaderParts.maxCounted`.
    static func forEachChunk(
        _ reader: ByteReader, _ body: (_ type: String, _ offset: Int, _ data: ByteReader) -> Void
    ) {
        var (offset, count) = (30, 0)
        while let length = reader.uint32(offset + 4, .little), let type = reader.fourCharacters(offset),
            count < HeaderParts.maxCounted
        {
            body(type, offset, reader.part(offset + 8, length))
            offset += 8 + length + (length & 1)
            count += 1
        }
    }

    /// Reads the size and alpha from the image data: RFC 6386 §9.1 (VP8), RFC 9649 §3.4 (VP8L).
    private static func bitstream(_ reader: ByteReader, at offset: Int) -> ImageHeader? {
        let data = offset + 8
        if reader.matches("VP8 ", at: offset), reader.matches([0x9D, 0x01, 0x2A], at: data + 3),
            let width = reader.uint16(data + 6, .little), let height = reader.uint16(data + 8, .little),
            width & 0x3FFF > 0, height & 0x3FFF > 0
        {
            return ImageHeader(format: .webp, encodedWidth: width & 0x3FFF, encodedHeight: height & 0x3FFF)
        }
        if reader.matches("VP8L", at: offset), reader.byte(data) == 0x2F, let bits = reader.uint32(data + 1, .little) {
            return ImageHeader(
                format: .webp, encodedWidth: (bits & 0x3FFF) + 1, encodedHeight: (bits >> 14 & 0x3FFF) + 1,
                hasAlpha: bits >> 28 & 1 == 1)
        }
        return nil
    }
}
