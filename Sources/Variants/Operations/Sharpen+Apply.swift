extension Sharpen {
    /// Moves each colour away from its blurred surroundings by the difference between the two: c + (c − blurred c). The
    /// surroundings are weighted by alpha; alpha itself is unchanged.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let source = try picture.inMemory(context)
        let blur = try GaussianBlur(of: source.image, sigma: sigma, context)
        let doubled = try VipsCall(
            "linear", ["in": .image(source.image.band(0, 3)), "a": .doubles([2]), "b": .doubles([0])]
        ).image()
        var result = try VipsCall(
            "subtract", ["left": .image(doubled), "right": .image(blur.image.unpremultipliedColours())]
        ).image().bytes(plus: [0.5, 0.5, 0.5])
        if source.image.hasAlpha {
            result = try VipsCall("bandjoin", ["in": .images([result, source.image.band(3)])]).image()
        }
        return try source.replacing(result.labelled("srgb")).inMemory(context, tile: blur.tile)
    }
}
