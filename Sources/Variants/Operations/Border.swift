import PipelineSupport

/// Draws a frame around the picture. `border:N:RRGGBB`.
struct Border: VariantOperation {
    static let token = "border"
    static let grammar = "border:N:RRGGBB"
    static let ranges = "N 1…8192 px; hex digits"
    static let summary = "Adds a frame of one colour around the picture, which grows by the frame's width on each side."
    static let example = "border:4:000000"

    /// Pixels on each side.
    var width: Int
    var colour: Colour

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let text = try arguments.next("a width in pixels")
        width = try arguments.pixels(text, "the width", most: PixelBox.edgeLimit)
        colour = try Colour(try arguments.next("a colour such as `000000`"), arguments)
    }

    var canonicalArguments: [String] { [String(width), colour.text] }
    var explanation: String { "Adds a frame of \(width) px in #\(colour.text)." }

    func multiplied(by ratio: Double) -> Border {
        var result = self
        result.width = PlainNumber.scaled(width, by: ratio)
        return result
    }
}
