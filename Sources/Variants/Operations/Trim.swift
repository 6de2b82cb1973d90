struct Trim: ResizingOperation {
    static let token = "trim"
    static let grammar = "trim[:T]"
    static let ranges = "T 0…255 (10): maximum difference from the border color"
    static let summary =
        "Cuts off a border of uniform color. A picture that consists only of border is left unchanged."
    static let example = "trim:20"

    /// The maximum difference, 0…255, between a border pixel and the color of the border.
    var threshold: Int

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        threshold = 10
        if !arguments.isAtEnd {
            threshold = try arguments.whole(try arguments.next("a threshold"), "the threshold", 0...255)
        }
    }

    var canonicalArguments: [String] { threshold == 10 ? [] : [String(threshold)] }
    var differenceGain: Double { .infinity }
    var explanation: String {
        "Cuts off the border: pixels that differ from the top left pixel by at most \(threshold) of 255."
    }

    func resultSize(of size: PixelSize) -> PixelSize? { nil }

    /// Removes the border. The border is everything outside the smallest rectangle that contains all pixels that differ
    /// from the top left pixel by more than the threshold, in premultiplied red, green or blue or in alpha. (All fully
    /// transparent pixels are therefore equal.) A picture that consists only of border is unchanged.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let memory = try picture.inMemory(context)
        let content = try context.windows.window { () throws(RenderError) in
            var content: PixelRectangle?
            _ = try memory.changed(context) { pixels throws(RenderError) in
                content = try Self.content(pixels, threshold: threshold, context.control)
            }
            return content ?? PixelRectangle(x: 0, y: 0, width: memory.size.width, height: memory.size.height)
        }
        guard content.width < memory.size.width || content.height < memory.size.height else { return memory }
        return try memory.cropped(to: content)
    }

    /// Returns the smallest rectangle around all pixels that are not border. Returns nil if the picture is only border.
    private static func content(
        _ pixels: EditablePixels, threshold: Int, _ control: RenderControl
    ) throws(RenderError) -> PixelRectangle? {
        let (size, bands) = (pixels.size, pixels.bands)
        let bytes = UnsafeBufferPointer(pixels.bytes)
        let border = (0..<4).map { Self.value(bytes, 0, bands, band: $0) }
        func isBorder(_ x: Int, _ y: Int) -> Bool {
            let at = (y * size.width + x) * bands
            for band in 0..<bands where abs(Self.value(bytes, at, bands, band: band) - border[band]) > threshold * 255 {
                return false
            }
            return true
        }
        func isBorder(row: Int, _ columns: Range<Int>) throws(RenderError) -> Bool {
            try control.check()
            return columns.allSatisfy { isBorder($0, row) }
        }
        func isBorder(column: Int, _ rows: Range<Int>) throws(RenderError) -> Bool {
            try control.check()
            return rows.allSatisfy { isBorder(column, $0) }
        }
        var (top, bottom, left, right) = (0, size.height, 0, size.width)
        while top < bottom, try isBorder(row: top, 0..<size.width) { top += 1 }
        if top == bottom { return nil }
        while try isBorder(row: bottom - 1, 0..<size.width) { bottom -= 1 }
        while try isBorder(column: left, top..<bottom) { left += 1 }
        while try isBorder(column: right - 1, top..<bottom) { right -= 1 }
        return PixelRectangle(x: left, y: top, width: right - left, height: bottom - top)
    }

    /// Returns a band of the pixel at offset `at`. Colors are multiplied by alpha. The range is 0…65025.
    @inline(__always)
    private static func value(_ bytes: UnsafeBufferPointer<UInt8>, _ at: Int, _ bands: Int, band: Int) -> Int {
        guard bands == 4 else { return band == 3 ? 255 * 255 : Int(bytes[at + band]) * 255 }
        return Int(bytes[at + band]) * (band == 3 ? 255 : Int(bytes[at + 3]))
    }
}
