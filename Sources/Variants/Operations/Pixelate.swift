/// Replaces square blocks with their mean colour. `pixelate:N`.
struct Pixelate: VariantOperation {
    static let token = "pixelate"
    static let grammar = "pixelate:N"
    static let ranges = "N 1…8192, edge of a block in pixels"
    static let summary = "Replaces square blocks with their mean colour."
    static let example = "pixelate:12"

    /// Edge of a block in pixels.
    var edge: Int

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let text = try arguments.next("the edge of a block in pixels")
        edge = try arguments.pixels(text, "the edge of a block", most: PixelBox.edgeLimit)
    }

    var canonicalArguments: [String] { [String(edge)] }
    var explanation: String { "Replaces blocks of \(edge) × \(edge) px with their mean colour." }

    func multiplied(by ratio: Double) -> Pixelate {
        var result = self
        result.edge = PlainNumber.scaled(edge, by: ratio)
        return result
    }
}
