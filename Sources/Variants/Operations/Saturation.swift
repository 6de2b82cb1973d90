/// Multiplies the saturation. `saturation:F`.
struct Saturation: VariantOperation {
    static let token = "saturation"
    static let grammar = "saturation:F"
    static let ranges = "F 0…4, 1 = unchanged"
    static let summary = "Multiplies the saturation, as CSS `saturate()` does."
    static let example = "saturation:1.2"

    /// 1 leaves the picture as it is.
    var factor: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        factor = try arguments.decimal(try arguments.next("a factor"), "the factor", 0...4)
    }

    var canonicalArguments: [String] { [PlainNumber.text(factor)] }
    var differenceGain: Double { max(1, factor) }
    var explanation: String { "Multiplies the saturation by \(PlainNumber.text(factor))." }
}
