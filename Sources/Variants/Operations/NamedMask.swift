struct NamedMask: VariantOperation {
    static let token = "mask"
    enum Fit: String, Sendable, CaseIterable { case stretch, cover }
    var name: String
    var fit: Fit

    init(_ arguments: inout StepArguments) throws(RecipeError) { fatalError() }
    var canonicalArguments: [String] { [] }
}
