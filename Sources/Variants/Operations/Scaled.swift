struct Scaled: ResizingOperation {
    static let token = "scaled"
    static let grammar = "scaled:F"
    static let ranges = "F 0.0001…100, or a share: `0.5` = `50%` = `50pct`"
    static let summary = "Scales both edges by a factor; may enlarge."
    static let example = "scaled:0.5"

    var factor: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let text = try arguments.next("a factor such as `0.5` or `50pct`")
        factor = try arguments.factor(text, "the factor", 0.0001...100)
    }

    var canonicalArguments: [String] { [PlainNumber.text(factor)] }
    var explanation: String { "Scales both edges by \(PlainNumber.text(factor))." }
    var nanosecondsPerPixel: Double { factor > 1 ? 30 : 4 }

    func resultSize(of size: PixelSize) -> PixelSize? { size.scaled(by: factor) }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let target = picture.size.scaled(by: factor)
        try context.checkEdge(target)
        return try picture.resized(to: target, quality: context.quality, context)
    }
}
