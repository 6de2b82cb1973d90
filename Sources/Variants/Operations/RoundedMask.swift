struct RoundedMask: VariantOperation {
    static let token = "rounded-mask"
    /// Clockwise from top left; always four.
    var radii: [EdgeLength]

    init(_ arguments: inout StepArguments) throws(RecipeError) { fatalError() }
    var canonicalArguments: [String] { [] }
}
