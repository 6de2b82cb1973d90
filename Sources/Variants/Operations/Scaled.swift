struct Scaled: VariantOperation {
    static let token = "scaled"
    var factor: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) { fatalError() }
    var canonicalArguments: [String] { [] }
}
