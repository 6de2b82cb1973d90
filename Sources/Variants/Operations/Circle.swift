struct Circle: VariantOperation {
    static let token = "circle"
    static let grammar = "circle"
    static let summary = "Makes everything outside the inscribed ellipse transparent."
    static let example = "circle"

    init(_ arguments: inout StepArguments) throws(RecipeError) {}

    var canonicalArguments: [String] { [] }
    var nanosecondsPerPixel: Double { 15 }
    var alphaEffect: AlphaEffect { .adds }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.masked(context) { RoundedRectangle(ellipse: $0.width, height: $0.height) }
    }
}
