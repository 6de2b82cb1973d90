import PipelineSupport

struct Background: VariantOperation {
    static let token = "background"
    static let grammar = "background:RRGGBB[AA]"
    static let ranges = "hex digits; AA `ff` (opaque)"
    static let summary =
        "Flattens alpha onto a colour. Later pad, extend and rotate steps use it as their background."
    static let example = "background:ffffff"

    var colour: Colour

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let text = try arguments.next("a colour such as `ffffff`")
        colour = try Colour(text, arguments, allowsAlpha: true)
    }

    var canonicalArguments: [String] { [colour.text] }

    var explanation: String {
        "Flattens alpha onto #\(colour.text). Later steps use it as their background."
    }

    var alphaEffect: AlphaEffect { .flattens(isOpaque: colour.alpha == 255) }

    var heldPictures: Double { 0 }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        var result = try picture.settled(context)
        if result.image.hasAlpha { result = try result.flattened(onto: colour) }
        result.background = colour
        return result
    }
}
