struct Contrast: FactorOperation {
    static let token = "contrast"
    static let grammar = "contrast:F"
    static let summary = "Multiplies the contrast, as CSS `contrast()` does."
    static let example = "contrast:1.2"

    var factor: Double

    /// Multiplies the difference between each value and 127.5 by the factor, as CSS `contrast()` does (Filter Effects
    /// 1, §12).
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.recolored(
            context, [[factor, 0, 0], [0, factor, 0], [0, 0, factor]], offset: 127.5 * (1 - factor))
    }
}
