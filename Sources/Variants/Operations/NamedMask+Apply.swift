extension NamedMask {
    init(name: String, fit: Fit = .stretch) {
        self.name = name
        self.fit = fit
    }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        guard let bytes = context.masks[name] else {
            throw RenderError(.maskUnavailable, "there is no mask `\(name)`")
        }
        let settled = try picture.settled(context)
        let size = settled.size
        // What goes wrong with the mask's own bytes is the mask's fault, not the original's.
        let coverage = try bytes.withUnsafeBytes { bytes in
            Result { () throws(RenderError) in
                do throws(RenderError) {
                    return try values(of: bytes, for: size, context)
                } catch {
                    throw RenderError(.maskUnavailable, "mask `\(name)` cannot be used: \(error.message)")
                }
            }
        }.get()
        var pixels = try settled.image.withAlpha().computed(context.control).array
        for index in 0..<coverage.count {
            pixels[index * 4 + 3] = alphaProduct(pixels[index * 4 + 3], coverage[index])
        }
        return settled.replacing(
            try Image(PixelStorage(pixels), width: size.width, height: size.height, bands: 4).labelled("srgb"))
    }

    /// The mask's alpha, else its luminance, scaled to `size`: one value a pixel.
    private func values(
        of bytes: UnsafeRawBufferPointer, for size: PixelSize, _ context: RenderContext
    ) throws(RenderError) -> [UInt8] {
        guard let format = Self.format(of: bytes) else {
            throw RenderError(.notAnImage, "masks are PNG, WebP or JPEG")
        }
        let image = try Decoder.open(bytes, format)
        if image.width * image.height > context.limits.pixels {
            throw RenderError(
                .overLimit, "\(image.width) × \(image.height) pixels are over the limit \(context.limits.pixels)")
        }
        var mask = try ColourConversion.sRGB(image, keepsProfile: false).image
        mask =
            mask.hasAlpha
            ? try VipsCall("extract_band", ["in": .image(mask), "band": 3]).image()
            : try VipsCall("colourspace", ["in": .image(mask), "space": "b-w"]).image()
        let source = PixelSize(width: mask.width, height: mask.height)
        var geometry = ThumbnailGeometry(
            source: source, box: PixelBox(width: size.width, height: size.height), mode: .fill, enlarges: true)
        if fit == .stretch { geometry.scaled = size }
        // The linear kernel: Lanczos would ring beside hard edges.
        if geometry.scaled != source { mask = try Resize.scaled(mask, to: geometry.scaled, kernel: "linear") }
        let window = Anchor.gravity(.centre).rectangle(size, in: geometry.scaled)
        let whole = try mask.computed(context.control).array
        return (0..<size.height).flatMap { row in
            let start = (row + window.y) * geometry.scaled.width + window.x
            return [UInt8](whole[start..<(start + size.width)])
        }
    }

    private static func format(of bytes: UnsafeRawBufferPointer) -> ImageFormat? {
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return .png }
        if bytes.starts(with: [0xFF, 0xD8, 0xFF]) { return .jpeg }
        if bytes.count > 12, bytes.starts(with: "RIFF".utf8), bytes[8..<12].elementsEqual("WEBP".utf8) { return .webp }
        return nil
    }
}
