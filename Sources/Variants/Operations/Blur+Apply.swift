extension Blur {
    /// Mixes sRGB values as stored, as CSS `blur()` does (Filter Effects 1, §12), times alpha; beyond the edges the
    /// picture counts as repeating its last pixel, so that an opaque picture stays opaque.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let source = try picture.inMemory(context)
        let blur = try GaussianBlur(of: source.image, sigma: sigma, context)
        return try source.replacing(blur.image.unpremultiplied()).inMemory(context, tile: blur.tile)
    }
}
