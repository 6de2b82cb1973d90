struct Trim: ResizingOperation {
    static let token = "trim"
    static let grammar = "trim[:T][:colour=RRGGBB][:equal=h|v|hv]"
    static let ranges =
        "T 0…255 (10): maximum difference from the border color; colour: hex digits, by default the color of the top left pixel; "
        + "equal: cut the same from left and right (`h`), top and bottom (`v`) or both"
    static let summary =
        "Cuts off a border of uniform color. A picture that consists only of border is left unchanged."
    static let example = "trim:20"

    /// The maximum difference, 0…255, between a border pixel and the color of the border.
    var threshold: Int
    /// The color of the border. If nil, the top left pixel has it.
    var color: Color?
    /// The directions, `h` and `v`, in which opposite sides lose the same number of pixels.
    var equal = ""

    private static let directions = ["h", "v", "hv"]

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        threshold = 10
        if let text = arguments.nextIfPositional(unlike: []) {
            threshold = try arguments.whole(text, "the threshold", 0...255)
        }
        let options = try arguments.options(keys: ["colour", "equal"])
        if let text = options.values["colour"] { color = try Color(text, arguments, allowsAlpha: false) }
        guard let text = options.values["equal"] else { return }
        guard Self.directions.contains(String(text)) else {
            throw arguments.error("expected `equal=h`, `equal=v` or `equal=hv`, not `equal=\(RecipeError.shown(text))`")
        }
        equal = String(text)
    }

    var canonicalArguments: [String] {
        (threshold == 10 ? [] : [String(threshold)]) + (color.map { ["colour=\($0.text)"] } ?? [])
            + (equal.isEmpty ? [] : ["equal=\(equal)"])
    }
    var differenceGain: Double { .infinity }
    var explanation: String {
        "Cuts off the border: pixels that differ from \(color.map { "#" + $0.text } ?? "the top left pixel") by at most "
            + "\(threshold) of 255."
            + (equal.isEmpty ? "" : " Opposite sides lose the same number of pixels (`\(equal)`).")
    }

    func resultSize(of size: PixelSize) -> PixelSize? { nil }

    /// Removes the border. The border is everything outside the smallest rectangle that contains all pixels that differ
    /// from the color of the border by more than the threshold, in premultiplied red, green or blue or in alpha. (All
    /// fully transparent pixels are therefore equal. If the recipe names a color, they belong to the border.) A picture
    /// that consists only of border is unchanged.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let memory = try picture.inMemory(context)
        let content = try context.windows.window { () throws(RenderError) in
            var content: PixelRectangle?
            _ = try memory.changed(context) { pixels throws(RenderError) in
                content = try self.content(pixels, context.control)
            }
            let (size, found) = (memory.size, content)
            return found.map { evened($0, size) } ?? PixelRectangle(x: 0, y: 0, width: size.width, height: size.height)
        }
        guard content.width < memory.size.width || content.height < memory.size.height else { return memory }
        return try memory.cropped(to: content)
    }

    /// Returns the smallest rectangle around all pixels that are not border. Returns nil if the picture is only border.
    private func content(
        _ pixels: EditablePixels, _ control: RenderControl
    ) throws(RenderError) -> PixelRectangle? {
        let (size, bands, threshold) = (pixels.size, pixels.bands, threshold)
        let bytes = UnsafeBufferPointer(pixels.bytes)
        let named = color.map { [$0.red, $0.green, $0.blue, 255].map { 255 * Int($0) } }
        let border = named ?? (0..<4).map { Self.value(bytes, 0, bands, band: $0) }
        let holdsTransparent = named != nil && bands == 4
        func isBorder(_ x: Int, _ y: Int) -> Bool {
            let at = (y * size.width + x) * bands
            if holdsTransparent, bytes[at + 3] == 0 { return true }
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

    /// Returns the rectangle, enlarged until opposite sides lose the same number of pixels.
    private func evened(_ content: PixelRectangle, _ size: PixelSize) -> PixelRectangle {
        var content = content
        if equal.contains("h") {
            content.x = min(content.x, size.width - content.x - content.width)
            content.width = size.width - 2 * content.x
        }
        if equal.contains("v") {
            content.y = min(content.y, size.height - content.y - content.height)
            content.height = size.height - 2 * content.y
        }
        return content
    }

    /// Returns a band of the pixel at offset `at`. Colors are multiplied by alpha. The range is 0…65025.
    @inline(__always)
    private static func value(_ bytes: UnsafeBufferPointer<UInt8>, _ at: Int, _ bands: Int, band: Int) -> Int {
        guard bands == 4 else { return band == 3 ? 255 * 255 : Int(bytes[at + band]) * 255 }
        return Int(bytes[at + band]) * (band == 3 ? 255 : Int(bytes[at + 3]))
    }
}
