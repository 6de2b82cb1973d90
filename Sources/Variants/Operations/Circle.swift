/// Masks with the inscribed ellipse. `circle`.
struct Circle: VariantOperation {
    static let token = "circle"
    static let grammar = "circle"
    static let summary = "Makes everything outside the inscribed ellipse transparent."
    static let example = "circle"

    init(_ arguments: inout StepArguments) throws(RecipeError) {}

    var canonicalArguments: [String] { [] }
    var alphaEffect: AlphaEffect { .adds }
}
