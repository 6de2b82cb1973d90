struct Scaled: ResizingOperation {
    static let token = "scaled"
    static let grammar = "scaled:F[:light=L]"
    static let ranges = """
        F 0.0001…100, or a percentage: `0.5` = `50%` = `50pct`; L `auto`, `linear`, `gamma` (default: the setting `render.light`)
        """
    static let words = ["light": RenderLight.allCases.map(\.rawValue)]
    static let summary = "Scales both edges by a factor. Can enlarge."
    static let example = "scaled:0.5"

    var factor: Double
    /// The light. If nil, the light of the render job is used.
    var light: RenderLight?

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let text = try arguments.next("a factor such as `0.5` or `50pct`")
        factor = try arguments.factor(text, "the factor", 0.0001...100)
        if let text = try arguments.options(keys: ["light"]).values["light"] {
            light = try arguments.word(text, "`light=`")
        }
    }

    var canonicalArguments: [String] { [PlainNumber.text(factor)] + (light.map { ["light=\($0.rawValue)"] } ?? []) }
    var explanation: String { "Scales both edges by \(PlainNumber.text(factor))\(light?.spoken ?? "")." }
    var nanosecondsPerPixel: Double { factor > 1 ? 30 : 4 }
    var heldPictures: Double { 0 }

    func resultSize(of size: PixelSize) -> PixelSize? { size.scaled(by: factor) }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let target = picture.size.scaled(by: factor)
        try context.checkEdge(target)
        return try picture.resized(to: target, light: light, context)
    }
}
