/// Cuts off a border of uniform colour. `trim[:T]`.
struct Trim: VariantOperation {
    static let token = "trim"
    static let grammar = "trim[:T]"
    static let ranges = "T 0…255 (10): how far from the border colour a pixel still counts as border"
    static let summary = "Cuts off a border of uniform colour; a picture that is all border is left unchanged."
    static let example = "trim:20"

    /// How far, of 255, a pixel may be from the border's colour and still count as border.
    var threshold: Int

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        threshold = 10
        if !arguments.isAtEnd {
            threshold = try arguments.whole(try arguments.next("a threshold"), "the threshold", 0...255)
        }
    }

    var canonicalArguments: [String] { threshold == 10 ? [] : [String(threshold)] }
    var differenceGain: Double { .infinity }
    var explanation: String { "Cuts off the border whose colour is within \(threshold) of 255." }
}
