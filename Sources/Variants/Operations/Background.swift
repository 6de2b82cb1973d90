import PipelineSupport

struct Background: VariantOperation {
    static let token = "background"
    static let grammar = "background:RRGGBB[AA]"
    static let ranges = "hex digits; AA `ff` (opaque)"
    static let summary =
        "Flattens alpha onto a color, which `pad`, `extend` and `rotate` in later steps use as their background."
    static let example = "background:ffffff"

    var color: Color

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let text = try arguments.next("a color such as `ffffff`")
        color = try Color(text, arguments, allowsAlpha: true)
    }

    var canonicalArguments: [String] { [color.text] }

    var explanation: String {
        "Flattens alpha onto #\(color.text). Later steps use this color as their background."
    }

    var alphaEffect: AlphaEffect { .flattens(isOpaque: color.alpha == 255) }

    var heldPictures: Double { 0 }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        var result = try picture.normalized(context)
        if result.image.hasAlpha { result = try result.flattened(onto: color) }
        result.background = color
        return result
    }
}
