struct Circle: VariantOperation {
    static let token = "circle"


    init(_ arguments: inout StepArguments) throws(RecipeError) { fatalError() }
    var canonicalArguments: [String] { [] }
}
