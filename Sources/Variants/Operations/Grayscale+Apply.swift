extension Grayscale {
    /// CSS `grayscale(1)`: each colour becomes the luminance of its sRGB values (Filter Effects 1, §12).
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.recoloured(context, [Luminance.weights, Luminance.weights, Luminance.weights])
    }
}
