/// Rounds the corners. `rounded-mask:R[:R:R:R]`.
struct RoundedMask: VariantOperation {
    static let token = "rounded-mask"
    static let grammar = "rounded-mask:R[:R:R:R]"
    static let ranges = "R 0…8192 px, or 0…100 `pct` of the smaller edge; four go clockwise from top left"
    static let summary = "Makes the corners transparent along rounded, anti-aliased edges."
    static let example = "rounded-mask:50pct"

    /// Clockwise from top left; always four.
    var radii: [EdgeLength]

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        radii = []
        for text in try arguments.oneOrFour("a radius") {
            radii.append(try EdgeLength(text, "the radius", arguments))
        }
    }

    var canonicalArguments: [String] { FourSides.text(radii.map(\.text)) }

    var explanation: String {
        "Rounds the corners by \(FourSides.text(radii.map(\.spoken)).joined(separator: ", "))."
    }

    var alphaEffect: AlphaEffect { .adds }

    func multiplied(by ratio: Double) -> RoundedMask {
        var result = self
        result.radii = radii.map { $0.multiplied(by: ratio) }
        return result
    }
}

/// Four values around a rectangle, written as one if they are equal.
enum FourSides {
    static func text(_ values: [String]) -> [String] {
        values.allSatisfy { $0 == values.first } ? Array(values.prefix(1)) : values
    }
}
