/// Unsharp mask. `sharpen[:S]`.
struct Sharpen: VariantOperation {
    static let token = "sharpen"
    static let grammar = "sharpen[:S]"
    static let ranges = "S 0.3…100 (1), sigma in output pixels"
    static let summary = "Sharpens (unsharp mask)."
    static let example = "sharpen:0.8"

    /// In pixels of the output.
    var sigma: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        sigma = 1
        if !arguments.isAtEnd {
            sigma = try arguments.decimal(try arguments.next("a sigma in pixels"), "the sigma", 0.3...100)
        }
    }

    var canonicalArguments: [String] { sigma == 1 ? [] : [PlainNumber.text(sigma)] }
    /// The largest gain measured.
    var differenceGain: Double { 5 }
    var explanation: String { "Sharpens with a sigma of \(PlainNumber.text(sigma)) px." }
}
