struct Rotate: VariantOperation {
    static let token = "rotate"
    /// Clockwise.
    var degrees: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) { fatalError() }
    var canonicalArguments: [String] { [] }
}
