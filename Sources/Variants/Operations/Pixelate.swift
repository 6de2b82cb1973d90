struct Pixelate: VariantOperation {
    static let token = "pixelate"
    static let grammar = "pixelate:N"
    static let ranges = "N 1…8192, edge of a block in pixels"
    static let summary = "Replaces square blocks with their mean color."
    static let example = "pixelate:12"

    /// The edge length of a block in pixels.
    var edge: Int

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let text = try arguments.next("the edge of a block in pixels")
        edge = try arguments.pixels(text, "the edge of a block", most: PixelBox.edgeLimit)
    }

    var canonicalArguments: [String] { [String(edge)] }
    var explanation: String { "Replaces blocks of \(edge) × \(edge) px with their mean color." }
    var nanosecondsPerPixel: Double { 35 }

    func multiplied(by ratio: Double) -> Pixelate { setting(\.edge, to: PlainNumber.scaled(edge, by: ratio)) }

    /// Replaces each block with one color. Blocks start at the top left, and blocks at the right and bottom edges may
    /// be smaller. The color of a block is the mean of the stored sRGB values, weighted by alpha. The alpha of a block
    /// is the mean alpha.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.changed(context) { pixels throws(RenderError) in
            let size = pixels.size
            for top in stride(from: 0, to: size.height, by: edge) {
                for left in stride(from: 0, to: size.width, by: edge) {
                    try context.control.check()
                    let block = PixelRectangle(
                        x: left, y: top, width: min(edge, size.width - left), height: min(edge, size.height - top))
                    Self.fill(block, of: pixels)
                }
            }
        }
    }

    private static func fill(_ block: PixelRectangle, of pixels: EditablePixels) {
        let (bytes, bands) = (pixels.bytes, pixels.bands)
        var (red, green, blue, alpha) = (0, 0, 0, 0)
        for y in block.y..<(block.y + block.height) {
            var at = (y * pixels.size.width + block.x) * bands
            for _ in 0..<block.width {
                let weight = bands == 4 ? Int(bytes[at + 3]) : 255
                red += Int(bytes[at]) * weight
                green += Int(bytes[at + 1]) * weight
                blue += Int(bytes[at + 2]) * weight
                alpha += weight
                at += bands
            }
        }
        let area = block.width * block.height
        let colors = [red, green, blue].map { alpha == 0 ? 0 : UInt8(($0 + alpha / 2) / alpha) }
        let values = colors + [UInt8((alpha + area / 2) / area)]
        for y in block.y..<(block.y + block.height) {
            var at = (y * pixels.size.width + block.x) * bands
            for _ in 0..<block.width {
                for band in 0..<bands { bytes[at + band] = values[band] }
                at += bands
            }
        }
    }
}
