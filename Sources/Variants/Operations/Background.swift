struct Background: VariantOperation {
    static let token = "background"
    var colour: Colour

    init(_ arguments: inout StepArguments) throws(RecipeError) { fatalError() }
    var canonicalArguments: [String] { [] }
}
