struct Extend: ResizingOperation {
    static let token = "extend"
    static let grammar = "extend:T[:R:B:L]"
    static let ranges = "0…8192 px each: top, right, bottom, left; a single value applies to all four sides"
    static let summary = "Adds a margin in the background color."
    static let example = "extend:10:20:10:20"

    /// The margins at the top, right, bottom and left in pixels. Always four values.
    var margins: [Int]

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        margins = []
        for text in try arguments.oneOrFour("a margin in pixels") {
            margins.append(try arguments.pixels(text, "the margin", least: 0, most: PixelBox.edgeLimit))
        }
    }

    var canonicalArguments: [String] { FourSides.text(margins.map(String.init)) }

    var explanation: String {
        "Adds a margin of \(FourSides.text(margins.map(String.init)).joined(separator: ", ")) px."
    }

    var alphaEffect: AlphaEffect {
        margins.allSatisfy { $0 == 0 } ? .keeps : .uncovers(antialiased: false)
    }

    /// Multiplies the margins. A non-zero margin stays at least one pixel wide, and zero stays zero.
    func multiplied(by ratio: Double) -> Extend {
        setting(\.margins, to: margins.map { $0 == 0 ? 0 : PlainNumber.scaled($0, by: ratio) })
    }

    func resultSize(of size: PixelSize) -> PixelSize? { canvas(of: size) }

    private func canvas(of size: PixelSize) -> PixelSize {
        PixelSize(width: size.width + margins[1] + margins[3], height: size.height + margins[0] + margins[2])
    }

    var heldPictures: Double { 0 }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let canvas = canvas(of: picture.size)
        try context.checkEdge(canvas)
        let normalized = try picture.normalized(context)
        if canvas == normalized.size { return normalized }
        return try normalized.placed(on: canvas, x: margins[3], y: margins[0], color: normalized.uncovered)
    }
}
