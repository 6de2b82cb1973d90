struct Sharpen: VariantOperation {
    static let token = "sharpen"
    static let grammar = "sharpen[:S]"
    static let ranges = "S 0.3…100 (1), sigma in output pixels"
    static let summary = "Sharpens (unsharp mask)."
    static let example = "sharpen:0.8"

    /// The standard deviation in output pixels.
    var sigma: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        sigma = 1
        if !arguments.isAtEnd {
            sigma = try arguments.decimal(try arguments.next("a sigma in pixels"), "the sigma", 0.3...100)
        }
    }

    var canonicalArguments: [String] { sigma == 1 ? [] : [PlainNumber.text(sigma)] }
    /// The largest gain that was measured.
    var differenceGain: Double { 5 }
    var explanation: String { "Sharpens with a sigma of \(PlainNumber.text(sigma)) px." }
    var nanosecondsPerPixel: Double { GaussianBlur.nanosecondsPerPixel(sigma: sigma) + 5 }

    /// Moves each color away from its blurred surroundings by the difference between the two: c + (c − blurred c). The
    /// surroundings are weighted by alpha, and alpha is unchanged.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let source = try picture.inMemory(context)
        let blur = try GaussianBlur(of: source.image, sigma: sigma, context)
        let doubled = try source.image.band(0, 3).linear([2], [0])
        var result = try VipsCall(
            "subtract", ["left": .image(doubled), "right": .image(blur.image.unpremultipliedColors())]
        ).image().bytes(plus: [0.5, 0.5, 0.5])
        if source.image.hasAlpha { result = try result.joined(alpha: source.image.band(3)) }
        return try source.replacing(result.labeled("srgb")).inMemory(context, tile: blur.tile)
    }
}
