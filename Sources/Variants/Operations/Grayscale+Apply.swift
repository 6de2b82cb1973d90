extension Grayscale {
    /// Replaces each colour with the luminance of its sRGB values, as CSS `grayscale(1)` does (Filter Effects 1, §12).
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.recoloured(context, [Luminance.weights, Luminance.weights, Luminance.weights])
    }
}
