/// Multiplies the contrast. `contrast:F`.
struct Contrast: VariantOperation {
    static let token = "contrast"
    static let grammar = "contrast:F"
    static let ranges = "F 0…4, 1 = unchanged"
    static let summary = "Multiplies the contrast, as CSS `contrast()` does."
    static let example = "contrast:1.2"

    /// 1 leaves the picture as it is.
    var factor: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        factor = try arguments.decimal(try arguments.next("a factor"), "the factor", 0...4)
    }

    var canonicalArguments: [String] { [PlainNumber.text(factor)] }
    var differenceGain: Double { max(1, factor) }
    var explanation: String { "Multiplies the contrast by \(PlainNumber.text(factor))." }
}
