/// Multiplies the brightness. `brightness:F`.
struct Brightness: VariantOperation {
    static let token = "brightness"
    static let grammar = "brightness:F"
    static let ranges = "F 0…4, 1 = unchanged"
    static let summary = "Multiplies the brightness, as CSS `brightness()` does."
    static let example = "brightness:1.2"

    /// 1 leaves the picture as it is.
    var factor: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        factor = try arguments.decimal(try arguments.next("a factor"), "the factor", 0...4)
    }

    var canonicalArguments: [String] { [PlainNumber.text(factor)] }
    var differenceGain: Double { max(1, factor) }
    var explanation: String { "Multiplies the brightness by \(PlainNumber.text(factor))." }
}
