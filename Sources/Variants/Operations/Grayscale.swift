/// Converts colours to shades of grey. `grayscale`.
struct Grayscale: VariantOperation {
    static let token = "grayscale"
    static let grammar = "grayscale"
    static let summary = "Turns colours into shades of grey, as CSS `grayscale(1)` does."
    static let example = "grayscale"

    init(_ arguments: inout StepArguments) throws(RecipeError) {}

    var canonicalArguments: [String] { [] }
}
