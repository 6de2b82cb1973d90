/// Colours times alpha, which is how pixels are mixed so that transparent ones lend no colour.
extension Image {
    /// Floats where there is alpha; an image without alpha stays as it is.
    func premultiplied() throws(RenderError) -> Image {
        hasAlpha ? try VipsCall("premultiply", ["in": .image(self), "max-alpha": 255]).image() : self
    }

    /// Colours alone, divided by the alpha they were multiplied with: floats, 0 where alpha is.
    func unpremultipliedColours() throws(RenderError) -> Image {
        guard hasAlpha else { return self }
        let share = try VipsCall("linear", ["in": .image(band(3)), "a": .doubles([1 / 255]), "b": .doubles([0])])
            .image()
        return try VipsCall("divide", ["left": .image(band(0, 3)), "right": .image(share)]).image()
    }

    /// Bytes again, rounded half up. Alpha is clipped only after colours were divided by it, so that what a sharp
    /// kernel overshoots leaves no fringe.
    func unpremultiplied() throws(RenderError) -> Image {
        let colours = try unpremultipliedColours().bytes(plus: [0.5, 0.5, 0.5])
        guard hasAlpha else { return try colours.labelled("srgb") }
        let alpha = try band(3).bytes(plus: [0.5])
        return try VipsCall("bandjoin", ["in": .images([colours, alpha])]).image().labelled("srgb")
    }

    /// Some of the bands.
    func band(_ first: Int, _ count: Int = 1) throws(RenderError) -> Image {
        try VipsCall("extract_band", ["in": .image(self), "band": .int(first), "n": .int(count)]).image()
    }
}
