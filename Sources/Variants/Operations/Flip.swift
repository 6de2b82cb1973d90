struct Flip: VariantOperation {
    static let token = "flip"
    var horizontally: Bool
    var vertically: Bool

    init(_ arguments: inout StepArguments) throws(RecipeError) { fatalError() }
    var canonicalArguments: [String] { [] }
}
