struct RoundedMask: VariantOperation {
    static let token = "rounded-mask"
    static let grammar = "rounded-mask:R[:R:R:R]"
    static let ranges = "R 0…8192 px, or 0…100 `pct` of the smaller edge; four values apply clockwise from the top left"
    static let summary = "Rounds the corners with an anti-aliased edge. The area outside becomes transparent."
    static let example = "rounded-mask:50pct"

    /// The radii, clockwise from the top left. Always four values.
    var radii: [EdgeLength]

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        radii = []
        for text in try arguments.oneOrFour("a radius") {
            radii.append(try EdgeLength(text, "the radius", arguments))
        }
    }

    var canonicalArguments: [String] { FourSides.text(radii.map(\.text)) }
    var nanosecondsPerPixel: Double { 15 }

    var explanation: String {
        "Rounds the corners by \(FourSides.text(radii.map(\.spoken)).joined(separator: ", "))."
    }

    var alphaEffect: AlphaEffect { .adds }

    func multiplied(by ratio: Double) -> RoundedMask { setting(\.radii, to: radii.map { $0.multiplied(by: ratio) }) }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.masked(context) { RoundedRectangle(width: $0.width, height: $0.height, radii: radii) }
    }
}
