struct Crop: ResizingOperation {
    static let token = "crop"
    static let grammar = "crop:WxH[+X+Y][:gravity=G]"
    static let ranges = "W, H 1…16777215, X, Y 0…16777215, pixels; G `centre`"
    static let words = ["gravity": Gravity.allCases.map(\.rawValue)]
    static let summary = "Crops the picture to a rectangle, which is clipped to the picture's edges."
    static let example = "crop:640x480+10+20"

    /// The longest edge that a decoder accepts. The limit of the output is checked during rendering, after later steps.
    private static let edgeLimit = 16_777_215

    var width: Int
    var height: Int
    /// The left and top offset, or nil if the anchor determines the position.
    var offset: (x: Int, y: Int)?
    var anchor: Anchor

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let text = try arguments.next("a rectangle such as `640x480+10+20`")
        let parts = text.split(separator: "+", omittingEmptySubsequences: false)
        guard parts.count == 1 || parts.count == 3 else {
            throw arguments.error("expected `WxH` or `WxH+X+Y`, not `\(RecipeError.shown(text))`")
        }
        let box = try PixelBox(parts[0], arguments, most: Self.edgeLimit)
        guard let width = box.width, let height = box.height else {
            throw arguments.error("`crop` requires both edges, such as `640x480`, not `\(RecipeError.shown(parts[0]))`")
        }
        self.width = width
        self.height = height
        if parts.count == 3 {
            offset = (
                x: try arguments.pixels(parts[1], "the left offset", least: 0, most: Self.edgeLimit),
                y: try arguments.pixels(parts[2], "the top offset", least: 0, most: Self.edgeLimit)
            )
        }
        let options = try arguments.options(keys: ["gravity"])
        guard offset == nil || options.values.isEmpty else {
            throw arguments.error("an offset and `gravity=` cannot be combined")
        }
        anchor = try Anchor(options, arguments)
    }

    var canonicalArguments: [String] {
        ["\(width)x\(height)" + (offset.map { "+\($0.x)+\($0.y)" } ?? "")] + anchor.arguments
    }

    var differenceGain: Double { offset == nil && anchor.looksAtPixels ? .infinity : 1 }
    var heldPictures: Double { differenceGain > 1 ? 2 : 0 }

    var explanation: String {
        let place = offset.map { "at \($0.x) px from the left and \($0.y) px from the top" } ?? "at \(anchor.spoken)"
        return "Crops the picture to \(width) × \(height) px \(place)."
    }

    func multiplied(by ratio: Double) -> Crop {
        var result = self
        result.width = PlainNumber.scaled(width, by: ratio)
        result.height = PlainNumber.scaled(height, by: ratio)
        result.offset = offset.map {
            (x: PlainNumber.scaled($0.x, by: ratio, least: 0), y: PlainNumber.scaled($0.y, by: ratio, least: 0))
        }
        return result
    }

    func resultSize(of size: PixelSize) throws(RenderError) -> PixelSize? {
        guard offset != nil else { return PixelSize(width: min(width, size.width), height: min(height, size.height)) }
        let part = try part(of: size)
        return PixelSize(width: part.width, height: part.height)
    }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let normalized = try picture.normalized(context)
        let size = normalized.size
        guard offset != nil else {
            let target = PixelSize(width: min(width, size.width), height: min(height, size.height))
            return target == size ? normalized : try normalized.cropped(to: target, anchor: anchor, context)
        }
        return try normalized.cropped(to: part(of: size))
    }

    /// Returns the rectangle that remains. Returns nil if the step has no offset, or if the rectangle is outside the
    /// picture.
    func window(of size: PixelSize) -> PixelRectangle? { offset == nil ? nil : try? part(of: size) }

    /// Returns the rectangle at the offset, clipped to the picture.
    private func part(of size: PixelSize) throws(RenderError) -> PixelRectangle {
        let offset = offset ?? (0, 0)
        let (left, top) = (max(0, offset.x), max(0, offset.y))
        let (right, bottom) = (min(size.width, offset.x + width), min(size.height, offset.y + height))
        guard left < right, top < bottom else {
            throw RenderError(
                .notApplicable,
                "crop \(width)x\(height)+\(offset.x)+\(offset.y) lies outside the picture of \(size.width) × \(size.height) pixels"
            )
        }
        return PixelRectangle(x: left, y: top, width: right - left, height: bottom - top)
    }
}
