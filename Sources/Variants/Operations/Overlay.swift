struct Overlay: VariantOperation {
    static let token = "overlay"
    static let grammar =
        "overlay:NAME[:tile][:gravity=G][:opacity=F][:scale=F][:fit=WxH][:offset=XxY][:gap=XxY][:from=WxH]"
    static let ranges =
        "NAME as for masks; G one of the nine positions (`centre`); opacity 0…1 (1); scale 0.01…100 (1) times the "
        + "overlay's own size, or 0.01…100 `pct` of the picture's width and height; fit: a box, instead of a scale; from: "
        + "the size below which the picture has no overlay; W, H 1…8192 px; offset: moves the overlay inward from its "
        + "position, or outward if negative; gap: the space between tiles; both are `XxY` or a single value, X, Y "
        + "0…8192 px, or `pct` of the smaller edge"
    static let words = ["gravity": Gravity.places.map(\.rawValue)]
    static let summary = "Places a picture from the overlay folder on top."
    static let example = "overlay:logo:gravity=south-east:scale=20pct:offset=3pctx3pct"

    /// The size at which the overlay is drawn.
    enum Size: Sendable, Hashable {
        /// A multiple of the overlay's own size.
        case factor(Double)
        /// A fraction (1 = 100%) of the picture's width and height that the overlay fits into. The overlay is enlarged
        /// if necessary.
        case share(Double)
        /// A box that the overlay fits into. The overlay is enlarged if necessary.
        case box(PixelBox)
    }

    var name: String
    /// The position of the overlay. Never `attention` or `entropy`.
    var gravity: Gravity
    /// The opacity, 0…1.
    var opacity: Double
    var size: Size
    /// The distance from the sides that `gravity` names. Along an axis without a named side, the overlay moves right or
    /// down.
    var offset = OverlayDistances()
    /// The space between the copies that cover the picture, of which one is in the middle. If nil, there is a single
    /// overlay.
    var gap: OverlayDistances?
    /// The minimum size of the pictures on which the overlay is drawn.
    var least: PixelBox?

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        name = try arguments.name(try arguments.next("the name of an overlay"), "the name of an overlay")
        let options = try arguments.options(
            flags: ["tile"], keys: ["gravity", "opacity", "scale", "fit", "offset", "gap", "from"])
        let values = options.values
        gravity = .center
        opacity = 1
        if let text = values["gravity"] { gravity = try arguments.word(text, "the gravity", Gravity.places) }
        if let text = values["opacity"] { opacity = try arguments.factor(text, "the opacity", 0...1) }
        switch (values["scale"], values["fit"]) {
        case (nil, nil): size = .factor(1)
        case (let text?, nil):
            if let percent = try arguments.percent(text, "the scale", 0.01...100) {
                size = .share(percent / 100)
            } else {
                size = .factor(try arguments.decimal(text, "the scale", 0.01...100))
            }
        case (nil, let text?): size = .box(try PixelBox(text, arguments))
        case (_?, _?): throw arguments.error("`scale=` and `fit=` cannot be combined")
        }
        if let text = values["from"] { least = try PixelBox(text, arguments) }
        if options.flags.contains("tile") {
            if let key = ["gravity", "offset"].first(where: { values[$0] != nil }) {
                throw arguments.error("`tile` always starts at the center; remove `\(key)=`")
            }
            gap = OverlayDistances()
            if let text = values["gap"] { gap = try OverlayDistances(text, "the gap", arguments) }
        } else {
            guard values["gap"] == nil else {
                throw arguments.error("`gap=` requires `tile`, because it is the space between tiles")
            }
            if let text = values["offset"] {
                offset = try OverlayDistances(text, "the offset", arguments, from: gravity)
            }
        }
    }

    var canonicalArguments: [String] {
        var texts = [name]
        if gap != nil { texts.append("tile") }
        if gravity != .center { texts.append("gravity=\(gravity.rawValue)") }
        if opacity != 1 { texts.append("opacity=\(PlainNumber.text(opacity))") }
        switch size {
        case .factor(1): break
        case .factor(let factor): texts.append("scale=\(PlainNumber.text(factor))")
        case .share(let share): texts.append("scale=\(EdgeLength.share(share).text)")
        case .box(let box): texts.append("fit=\(box.text)")
        }
        if offset != OverlayDistances() { texts.append("offset=\(offset.text)") }
        if let gap, gap != OverlayDistances() { texts.append("gap=\(gap.text)") }
        if let least { texts.append("from=\(least.text)") }
        return texts
    }

    var explanation: String {
        var text = "\(gap == nil ? "Places" : "Repeats") `\(name)` on top of the picture"
        if gap == nil { text += " at \(gravity.spoken)" }
        switch size {
        case .factor(1): break
        case .factor(let factor): text += ", at \(PlainNumber.text(factor)) times its own size"
        case .share(let share): text += ", fitted into \(PlainNumber.text(share * 100)) % of its width and height"
        case .box(let box): text += ", fitted into \(box.spoken)"
        }
        if offset != OverlayDistances() { text += ", moved inward by \(offset.spoken)" }
        if let gap, gap != OverlayDistances() { text += ", with gaps of \(gap.spoken)" }
        if let least { text += ", if the picture has at least \(least.spoken)" }
        return text + "."
    }

    var nanosecondsPerPixel: Double { gap == nil ? 5 : 15 }

    /// Multiplies the lengths in pixels. A scale is unchanged, because it is relative to the size of the overlay or the
    /// picture.
    func multiplied(by ratio: Double) -> Overlay {
        var result = self
        if case .box(let box) = size { result.size = .box(box.multiplied(by: ratio)) }
        result.offset = offset.multiplied(by: ratio)
        result.gap = gap?.multiplied(by: ratio)
        result.least = least?.multiplied(by: ratio)
        return result
    }

    /// Composites the overlay with “source over” (W3C Compositing 1, §5.1) on the stored sRGB values. Parts of the
    /// overlay beyond the picture are clipped. The picture keeps its size, and opaque pixels stay opaque.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let size = picture.size
        if let least, size.width < least.width ?? 1 || size.height < least.height ?? 1 { return picture }
        let (box, factor): (PixelBox?, Double) =
            switch self.size {
            case .factor(let factor): (nil, factor)
            case .share(let share): (PixelBox(size.scaled(by: share)), 1)
            case .box(let box): (box, 1)
            }
        let form = "overlay:\(box?.text ?? PlainNumber.text(factor))"
        let overlay = try NamedPicture.pixels(
            of: context.masks[Recipe.overlayKey(name)], "overlay `\(name)`", form: form, context
        ) { overlay throws(RenderError) in
            let target =
                box.map { ThumbnailGeometry(source: overlay.size, box: $0, mode: .fit, enlarges: true).scaled }
                ?? overlay.size.scaled(by: factor)
            return try overlay.resized(to: target, light: .linear, context).image.withAlpha()
        }
        return try picture.changed(context) { pixels throws(RenderError) in
            let (left, top) = place(of: overlay.size, in: pixels.size)
            let space = gap?.pixels(in: pixels.size)
            let columns = Self.starts(at: left, overlay.size.width, gap: space?.x, in: pixels.size.width)
            for top in Self.starts(at: top, overlay.size.height, gap: space?.y, in: pixels.size.height) {
                for row in max(0, top)..<max(0, top, min(pixels.size.height, top + overlay.size.height)) {
                    try context.control.check()
                    for left in columns {
                        let visible = max(0, left)..<max(0, left, min(pixels.size.width, left + overlay.size.width))
                        var source = ((row - top) * overlay.size.width + visible.lowerBound - left) * 4
                        var target = (row * pixels.size.width + visible.lowerBound) * pixels.bands
                        for _ in visible {
                            blend(overlay.storage.bytes, source, over: pixels, target)
                            source += 4
                            target += pixels.bands
                        }
                    }
                }
            }
        }
    }

    /// Returns the top left position of the overlay, or of the middle tile. The position may be outside the picture.
    private func place(of overlay: PixelSize, in picture: PixelSize) -> (x: Int, y: Int) {
        let visible = PixelSize(
            width: min(overlay.width, picture.width), height: min(overlay.height, picture.height))
        let from = Anchor.gravity(gravity).rectangle(visible, in: overlay)
        let to = Anchor.gravity(gravity).rectangle(visible, in: picture)
        let (moved, sides) = (offset.pixels(in: picture), gravity.sides)
        return (
            x: to.x - from.x + (sides.x > 0 ? -moved.x : moved.x), y: to.y - from.y + (sides.y > 0 ? -moved.y : moved.y)
        )
    }

    /// Returns the start of each copy along an axis. If `gap` is nil, this is only `first`. Otherwise, it is every
    /// position at which part of a copy is visible.
    private static func starts(at first: Int, _ length: Int, gap: Int?, in whole: Int) -> [Int] {
        guard let gap else { return [first] }
        let period = length + gap
        let phase = first % period
        return Array(stride(from: phase > 0 ? phase - period : phase, to: whole, by: period))
    }

    /// Blends the overlay's four-band pixel at `source` over the pixel at `target`.
    private func blend(
        _ overlay: UnsafeRawBufferPointer, _ source: Int, over pixels: EditablePixels, _ target: Int
    ) {
        let share = Double(overlay[source + 3]) / 255 * opacity
        guard share > 0 else { return }
        let below = pixels.bands == 4 ? Double(pixels.bytes[target + 3]) / 255 * (1 - share) : 1 - share
        let sum = share + below
        for band in 0..<3 {
            let mixed = Double(overlay[source + band]) * share + Double(pixels.bytes[target + band]) * below
            pixels.bytes[target + band] = UInt8((mixed / sum).rounded())
        }
        if pixels.bands == 4 { pixels.bytes[target + 3] = UInt8(min(255, (sum * 255).rounded())) }
    }
}

/// A horizontal and a vertical distance, in whole pixels or as fractions (1 = 100%) of the picture's smaller edge.
struct OverlayDistances: Sendable, Hashable {
    var x = EdgeLength.pixels(0)
    var y = EdgeLength.pixels(0)
}

extension OverlayDistances {
    /// Parses `XxY`, or a single value for both distances.
    ///
    /// - Parameter gravity: the place that the distances are measured from. The distances may then be negative, and a
    ///   single value applies to the sides that the place touches. nil if the distances are gaps between copies.
    init(
        _ text: Substring, _ what: String, _ arguments: StepArguments, from gravity: Gravity? = nil
    ) throws(RecipeError) {
        let parts = text.split(separator: "x", omittingEmptySubsequences: false)
        guard parts.count <= 2 else {
            throw arguments.error(
                "\(what) must be one distance or two such as `10x5pct`, not `\(RecipeError.shown(text))`")
        }
        let sides = parts.count == 2 ? nil : gravity?.sides
        if let sides, sides == (0, 0) {
            throw arguments.error("\(what) must be two distances such as `10x0`, because the gravity is `centre`")
        }
        for (part, path) in zip([parts[0], parts[parts.count - 1]], [\Self.x, \Self.y]) {
            let isNegative = gravity != nil && part.hasPrefix("-")
            let size = isNegative ? part.dropFirst() : part
            let length: EdgeLength
            if let percent = try arguments.percent(size, what, 0...100) {
                length = .share(isNegative ? -percent / 100 : percent / 100)
            } else {
                let pixels = try arguments.pixels(size, what, least: 0, most: PixelBox.edgeLimit)
                length = .pixels(Double(isNegative ? -pixels : pixels))
            }
            let isOnSide = sides.map { path == \Self.x ? $0.x != 0 : $0.y != 0 } ?? true
            if isOnSide, length != .share(0) { self[keyPath: path] = length }
        }
    }

    /// The canonical text, which always contains the `x`.
    var text: String { "\(x.text)x\(y.text)" }

    /// The text in explanations.
    var spoken: String { x == y ? x.spoken : "\(x.spoken) across and \(y.spoken) down" }

    /// Multiplies distances in pixels. A distance that is not 0 remains at least one pixel.
    func multiplied(by ratio: Double) -> Self {
        func multiplied(_ length: EdgeLength) -> EdgeLength {
            guard case .pixels(let pixels) = length, pixels != 0 else { return length }
            let scaled = Double(PlainNumber.scaled(Int(abs(pixels)), by: ratio))
            return .pixels(pixels < 0 ? -scaled : scaled)
        }
        return OverlayDistances(x: multiplied(x), y: multiplied(y))
    }

    /// Returns the distances in pixels for a picture, rounded half away from 0.
    func pixels(in picture: PixelSize) -> (x: Int, y: Int) {
        let edge = min(picture.width, picture.height)
        return (x: Int(x.pixels(of: edge).rounded()), y: Int(y.pixels(of: edge).rounded()))
    }
}
