import PipelineSupport

struct Border: ResizingOperation {
    static let token = "border"
    static let grammar = "border:N:RRGGBB"
    static let ranges = "N 1…8192 px; hex digits"
    static let summary = "Adds a frame of one color. The picture grows by the width of the frame on each side."
    static let example = "border:4:000000"

    /// The width on each side in pixels.
    var width: Int
    var color: Color

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let text = try arguments.next("a width in pixels")
        width = try arguments.pixels(text, "the width", most: PixelBox.edgeLimit)
        color = try Color(try arguments.next("a color such as `000000`"), arguments)
    }

    var canonicalArguments: [String] { [String(width), color.text] }
    var explanation: String { "Adds a frame of \(width) px in #\(color.text)." }

    func multiplied(by ratio: Double) -> Border { setting(\.width, to: PlainNumber.scaled(width, by: ratio)) }

    func resultSize(of size: PixelSize) -> PixelSize? { canvas(of: size) }

    private func canvas(of size: PixelSize) -> PixelSize {
        PixelSize(width: size.width + 2 * width, height: size.height + 2 * width)
    }

    /// The frame is drawn outside the picture: each edge grows by twice the frame's width, and no pixel is covered.
    var heldPictures: Double { 0 }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let canvas = canvas(of: picture.size)
        try context.checkEdge(canvas)
        return try picture.normalized(context).placed(on: canvas, x: width, y: width, color: color)
    }
}
