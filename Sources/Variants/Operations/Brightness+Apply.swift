extension Brightness {
    /// Multiplies each value by the factor, as CSS `brightness()` does (Filter Effects 1, §12).
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.recoloured(context, [[factor, 0, 0], [0, factor, 0], [0, 0, factor]])
    }
}
