struct Blur: VariantOperation {
    static let token = "blur"
    static let grammar = "blur:S"
    static let ranges = "S 0.3…100, sigma in output pixels"
    static let summary = "Blurs (Gaussian)."
    static let example = "blur:2.5"

    /// The standard deviation in output pixels.
    var sigma: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let text = try arguments.next("a sigma in pixels")
        sigma = try arguments.decimal(text, "the sigma", 0.3...100, inPixels: true)
    }

    var canonicalArguments: [String] { [PlainNumber.text(sigma)] }
    var explanation: String { "Blurs with a sigma of \(PlainNumber.text(sigma)) px." }
    var nanosecondsPerPixel: Double { GaussianBlur.nanosecondsPerPixel(sigma: sigma) }

    func multiplied(by ratio: Double) -> Blur { setting(\.sigma, to: PlainNumber.scaled(sigma, by: ratio)) }

    /// Blurs premultiplied sRGB values without converting them to linear light, as CSS `blur()` does (Filter Effects 1,
    /// §12). Edge pixels are replicated beyond the border, so an opaque picture stays opaque.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let source = try picture.inMemory(context)
        let blur = try GaussianBlur(of: source.image, sigma: sigma, context)
        return try source.replacing(blur.image.unpremultiplied()).inMemory(context, tile: blur.tile)
    }
}
