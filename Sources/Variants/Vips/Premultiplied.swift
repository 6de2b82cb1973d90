import CVips

/// Premultiplied alpha. Pixels are mixed with their colors multiplied by alpha, so that transparent pixels contribute
/// no color.
extension Image {
    /// Returns premultiplied floats. Returns an image without alpha unchanged.
    func premultiplied() throws(RenderError) -> Image {
        hasAlpha ? try VipsCall("premultiply", ["in": .image(self), "max-alpha": 255]).image() : self
    }

    /// Returns only the color bands, divided by the alpha that they were multiplied by. The result is in floats, with 0
    /// for fully transparent pixels.
    func unpremultipliedColors() throws(RenderError) -> Image {
        guard hasAlpha else { return self }
        let share = try band(3).linear([1 / 255], [0])
        return try VipsCall("divide", ["left": .image(band(0, 3)), "right": .image(share)]).image()
    }

    /// Converts back to bytes, rounded half up. Alpha is clipped only after colors have been divided by it, so that the
    /// overshoot of a sharp kernel leaves no fringe.
    func unpremultiplied() throws(RenderError) -> Image {
        let colors = try unpremultipliedColors().bytes(plus: [0.5, 0.5, 0.5])
        guard hasAlpha else { return try colors.labeled("srgb") }
        return try colors.joined(alpha: band(3).bytes(plus: [0.5])).labeled("srgb")
    }

    /// Divides premultiplied colors from a file by alpha. Supports 8 and 16 bits, which are rounded, and floats with
    /// alpha up to 1.
    func dividedByAlpha() throws(RenderError) -> Image {
        let isFloat = format == Int(CVIPS_FORMAT_FLOAT)
        let most = isFloat ? 1 : isWide ? 65535.0 : 255
        let result = try VipsCall("unpremultiply", ["in": .image(self), "max-alpha": .double(most)]).image()
        return isFloat ? result : try result.linear([1], [0.5]).cast(to: isWide ? "ushort" : "uchar")
    }

    /// Returns `count` bands, starting at `first`.
    func band(_ first: Int, _ count: Int = 1) throws(RenderError) -> Image {
        try VipsCall("extract_band", ["in": .image(self), "band": .int(first), "n": .int(count)]).image()
    }
}
