extension Blur {
    /// Blurs premultiplied sRGB values without linearising them, as CSS `blur()` does (Filter Effects 1, §12). Edge
    /// pixels are replicated beyond the border, so an opaque picture stays opaque.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let source = try picture.inMemory(context)
        let blur = try GaussianBlur(of: source.image, sigma: sigma, context)
        return try source.replacing(blur.image.unpremultiplied()).inMemory(context, tile: blur.tile)
    }
}
