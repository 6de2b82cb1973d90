struct Saturation: FactorOperation {
    static let token = "saturation"
    static let grammar = "saturation:F"
    static let summary = "Multiplies the saturation, as CSS `saturate()` does."
    static let example = "saturation:1.2"

    var factor: Double

    /// Applies the matrix of CSS `saturate()` (Filter Effects 1, §9.6), with the rounded luminance weights of the
    /// specification.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let weights = [0.213, 0.715, 0.072]
        let matrix = (0..<3).map { row in
            (0..<3).map { column in weights[column] * (1 - factor) + (row == column ? factor : 0) }
        }
        return try picture.recolored(context, matrix)
    }
}
