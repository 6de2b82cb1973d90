struct Grayscale: VariantOperation {
    static let token = "grayscale"
    static let grammar = "grayscale"
    static let summary = "Turns colors into shades of gray, as CSS `grayscale(1)` does."
    static let example = "grayscale"

    init(_ arguments: inout StepArguments) throws(RecipeError) {}

    var canonicalArguments: [String] { [] }
    var nanosecondsPerPixel: Double { 15 }
    var heldPictures: Double { 0 }

    /// Replaces each color with the luminance of its sRGB values, as CSS `grayscale(1)` does (Filter Effects 1, §12).
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.recolored(context, [Luminance.weights, Luminance.weights, Luminance.weights])
    }
}
