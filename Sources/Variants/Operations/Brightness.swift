struct Brightness: FactorOperation {
    static let token = "brightness"
    static let grammar = "brightness:F"
    static let summary = "Multiplies the brightness, as CSS `brightness()` does."
    static let example = "brightness:1.2"

    var factor: Double

    /// Multiplies each value by the factor, as CSS `brightness()` does (Filter Effects 1, §12).
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.recolored(context, [[factor, 0, 0], [0, factor, 0], [0, 0, factor]])
    }
}
