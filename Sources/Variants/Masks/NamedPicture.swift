/// The pixels of a mask (one band) or an overlay (four bands), with 8 bits per sample and rows without padding.
struct NamedPixels: Sendable {
    let storage: PixelStorage
    let size: PixelSize
}

/// Decodes masks and overlays. These are pictures that a recipe refers to by name and that are supplied as encoded
/// bytes.
enum NamedPicture {
    /// Opens `bytes` and calls `make` to convert the upright sRGB picture to pixels, or returns cached pixels.
    ///
    /// - Parameters:
    /// - what: the name in messages, such as "mask `star`". Errors in the bytes are attributed to this picture, not to
    ///   the original.
    /// - form: a description of everything other than the bytes that affects the pixels, such as
    ///   "mask:stretch:300x200".
    static func pixels(
        of bytes: [UInt8]?, _ what: String, form: String, _ context: RenderContext,
        _ make: (Picture) throws(RenderError) -> Image
    ) throws(RenderError) -> NamedPixels {
        guard let bytes else { throw RenderError(.maskUnavailable, "the \(what) does not exist") }
        if let known = ScaledPictures.shared.pixels(of: bytes, form) { return known }
        do throws(RenderError) {
            let pixels = try bytes.withUnsafeBytes { buffer in
                Result { () throws(RenderError) in
                    let image = try make(open(buffer, context))
                    let size = PixelSize(width: image.width, height: image.height)
                    return NamedPixels(storage: try image.computed(context.control), size: size)
                }
            }.get()
            ScaledPictures.shared.keep(pixels, of: bytes, form)
            return pixels
        } catch {
            if error.code == .cancelled || error.code == .deadline { throw error }
            throw RenderError(.maskUnavailable, "\(what) cannot be used: \(error.message)")
        }
    }

    /// Opens the picture with the limits that apply to originals.
    private static func open(
        _ bytes: UnsafeRawBufferPointer, _ context: RenderContext
    ) throws(RenderError) -> Picture {
        let header = try ImageHeader.probe(bytes)
        try context.limits.checkFormat(header.format)
        let (area, overflow) = header.encodedWidth.multipliedReportingOverflow(by: header.encodedHeight)
        if overflow || area > context.limits.pixels {
            throw .overLimit(
                "it has \(header.sizeText)", "pixels", context.limits.pixels,
                remedy: "use a smaller file")
        }
        let held = header.format.decoder?.memory(header, shrink: 1, count: bytes.count) ?? 0
        guard AddressSpace.hasRoom(for: held + 4 * area) else {
            throw RenderError(
                .overLimit,
                "\(header.sizeText) of \(header.format.title) may take \((held + 4 * area) / 1_000_000) MB of "
                    + "memory, more than limits.workerMemory allows; raise this limit, or use a smaller file")
        }
        let image = try Decoding.open(ByteReader(bytes).withoutLeadingSpace.all, header)
        let size = PixelSize(width: image.width, height: image.height)
        return try Picture(
            image: image, size: header.orientation >= 5 ? size.swapped : size, orientation: header.orientation
        ).normalized(context)
    }
}
