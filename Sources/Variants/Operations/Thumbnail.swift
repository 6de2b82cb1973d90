struct Thumbnail: VariantOperation {
    static let token = "thumbnail"
    enum Mode: String, Sendable, CaseIterable { case fit, fill, pad, stretch }
    var box: PixelBox
    var mode: Mode
    var enlarges: Bool
    var anchor: Anchor
    var resample: RenderQuality?

    init(_ arguments: inout StepArguments) throws(RecipeError) { fatalError() }
    var canonicalArguments: [String] { [] }
}
