/// Shades of grey. `grayscale`.
struct Grayscale: VariantOperation {
    static let token = "grayscale"
    static let grammar = "grayscale"
    static let summary = "Turns colours into shades of grey."
    static let example = "grayscale"
    static let isAvailable = false

    init(_ arguments: inout StepArguments) throws(RecipeError) {}

    var canonicalArguments: [String] { [] }
}
