struct Crop: VariantOperation {
    static let token = "crop"
    var width: Int
    var height: Int
    /// Left and top; nil where the anchor decides.
    var offset: (x: Int, y: Int)?
    var anchor: Anchor

    init(_ arguments: inout StepArguments) throws(RecipeError) { fatalError() }
    var canonicalArguments: [String] { [] }
}
