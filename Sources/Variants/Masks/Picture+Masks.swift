extension Picture {
    /// The picture with its alpha multiplied by a shape of its size.
    func masked(
        _ context: RenderContext, _ shape: (PixelSize) -> RoundedRectangle
    ) throws(RenderError) -> Picture {
        var result = try settled(context)
        let image = try result.image.withAlpha()
        var pixels = try image.computed(context.control).array
        shape(result.size).multiply(into: &pixels)
        result.image = try Image(PixelStorage(pixels), width: result.size.width, height: result.size.height, bands: 4)
            .labelled("srgb")
        return result
    }
}
