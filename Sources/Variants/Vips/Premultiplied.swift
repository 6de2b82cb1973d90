import CVips

/// Premultiplied alpha: pixels are mixed with their colours multiplied by alpha, so transparent ones contribute none.
extension Image {
    /// Floats if there is alpha; an image without alpha is returned unchanged.
    func premultiplied() throws(RenderError) -> Image {
        hasAlpha ? try VipsCall("premultiply", ["in": .image(self), "max-alpha": 255]).image() : self
    }

    /// The colour bands alone, divided by the alpha they were multiplied with: floats, 0 where alpha is 0.
    func unpremultipliedColours() throws(RenderError) -> Image {
        guard hasAlpha else { return self }
        let share = try band(3).linear([1 / 255], [0])
        return try VipsCall("divide", ["left": .image(band(0, 3)), "right": .image(share)]).image()
    }

    /// Converts to bytes again, rounded half up. Alpha is clipped only after colours were divided by it, so that the
    /// overshoot of a sharp kernel leaves no fringe.
    func unpremultiplied() throws(RenderError) -> Image {
        let colours = try unpremultipliedColours().bytes(plus: [0.5, 0.5, 0.5])
        guard hasAlpha else { return try colours.labelled("srgb") }
        return try colours.joined(alpha: band(3).bytes(plus: [0.5])).labelled("srgb")
    }

    /// Divides colours that a file stores multiplied by alpha: of 8 or 16 bits, rounded, or floats with an alpha up to 1.
    func dividedByAlpha() throws(RenderError) -> Image {
        let isFloat = format == Int(CVIPS_FORMAT_FLOAT)
        let most = isFloat ? 1 : isWide ? 65535.0 : 255
        let result = try VipsCall("unpremultiply", ["in": .image(self), "max-alpha": .double(most)]).image()
        return isFloat ? result : try result.linear([1], [0.5]).cast(to: isWide ? "ushort" : "uchar")
    }

    /// `count` bands, from `first` on.
    func band(_ first: Int, _ count: Int = 1) throws(RenderError) -> Image {
        try VipsCall("extract_band", ["in": .image(self), "band": .int(first), "n": .int(count)]).image()
    }
}
