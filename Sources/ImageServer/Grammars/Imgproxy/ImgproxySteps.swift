import Variants

/// The steps of a recipe for one original. They have a fixed order, whatever the order of the options.
///
/// The picture is scaled before it is rotated, so that decoders can shrink. Therefore, positions in the turned picture
/// are turned back.
struct ImgproxySteps {
    private(set) var texts: [String] = []
    private let options: ImgproxyOptions
    private let turn: ImgproxyTurn
    /// The size of the picture so far, or nil if it depends on pixels because of `trim`.
    private var size: PixelPair?
    /// The factor for offsets and padding.
    private var density: Double

    /// Makes the steps up to the padding.
    ///
    /// - Parameter limit: the maximum length of an edge of the result. 0 means no maximum.
    init(_ options: ImgproxyOptions, _ header: ImageHeader, limit: Int) throws(ImgproxyProblem) {
        self.options = options
        turn = ImgproxyTurn(
            quarters: options.rotation / 90, flipsHorizontally: options.flipsHorizontally,
            flipsVertically: options.flipsVertically)
        density = options.dpr
        let stored = PixelPair(header.encodedWidth, header.encodedHeight)
        let upright = options.autoRotate ? PixelPair(header.width, header.height) : stored
        if options.trim != nil {
            try checkTrimmed(limit)
            addTrim()
            addTrimmedResize()
            addLook()
            addTrimmedExtension()
        } else {
            // A drawing has no pixels that enlarging would blur.
            let enlarges = options.enlarges || header.format == .svg
            let original = turn.backSize(upright)
            let geometry = ImgproxyGeometry(options, original: original, limit: limit, enlarges: enlarges)
            density = geometry.density
            addCrop(geometry, original)
            addResize(geometry, enlarges: enlarges)
            addLook()
            addExtensions(geometry)
        }
    }

    // MARK: Crop and resize

    private var cropGravity: ImgproxyOptions.Gravity {
        options.cropGravity.isGiven ? options.cropGravity : options.gravity
    }

    private mutating func addCrop(_ geometry: ImgproxyGeometry, _ original: PixelPair) {
        guard geometry.cropped != original else { return }
        let gravity = cropGravity
        let window = turn.backSize(geometry.cropped).text
        guard gravity.kind != .sm else { return texts.append("crop:\(window):gravity=attention") }
        let position = ImgproxyGeometry.position(of: geometry.cropped, in: original, gravity, density: 1)
        let back = turn.back(position: position, of: geometry.cropped, in: original)
        texts.append("crop:\(window)+\(back.x)+\(back.y)")
    }

    private mutating func addResize(_ geometry: ImgproxyGeometry, enlarges: Bool) {
        let (scaled, visible) = (geometry.scaled, geometry.visible)
        size = visible
        if let short = shortForm(geometry, enlarges: enlarges) {
            texts.append(short)
            return addTurn()
        }
        if scaled != geometry.cropped { texts.append("thumbnail:\(turn.backSize(scaled).text):stretch:up") }
        addTurn()
        guard visible != scaled else { return }
        guard options.gravity.kind != .sm else { return texts.append("crop:\(visible.text):gravity=attention") }
        let position = ImgproxyGeometry.position(of: visible, in: scaled, options.gravity, density: density)
        texts.append("crop:\(visible.text)+\(position.x)+\(position.y)")
    }

    /// Returns a `thumbnail` step that says the same, so that other URLs and commands share the variant. Its window can
    /// differ by one pixel, because the step rounds the middle differently.
    private func shortForm(_ geometry: ImgproxyGeometry, enlarges: Bool) -> String? {
        let isPlain =
            options.dpr == 1 && density == 1 && options.zoom == SIMD2(1, 1) && options.minimum == .zero
            && options.gravity.offset == .zero && !options.extends.isOn && !options.extendsRatio.isOn
        guard isPlain, geometry.type != .force, geometry.target != .zero else { return nil }
        let up = enlarges ? ":up" : ""
        let text = Self.thumbnail(turn.backSize(geometry.target))
        guard geometry.type != .fit, geometry.target.min() > 0 else { return text + up }
        // The step shrinks a box that is larger than the picture, as `fill-down` does.
        let isCovered = geometry.target.fits(in: geometry.cropped)
        guard enlarges || isCovered || geometry.type == .fillDown else { return nil }
        return text + ":fill" + up + Self.argument(options.gravity, turn)
    }

    private static func thumbnail(_ box: PixelPair) -> String {
        "thumbnail:\(box.x > 0 ? "\(box.x)" : "")x\(box.y > 0 ? "\(box.y)" : "")"
    }

    /// Returns the argument for a gravity in the picture before turning.
    private static func argument(_ gravity: ImgproxyOptions.Gravity, _ turn: ImgproxyTurn) -> String {
        switch gravity.kind {
        case .sm: return ":gravity=attention"
        case .fp:
            let focus = (turn.back(gravity.focus * 2 - 1) + 1) / 2
            return ":focus=\(decimal(focus.x))x\(decimal(focus.y))"
        default:
            let name = name(turn.back(gravity.sides))
            return name == "centre" ? "" : ":gravity=" + name
        }
    }

    private static func name(_ sides: SIMD2<Int>) -> String {
        let parts = [["north", "", "south"][sides.y + 1], ["west", "", "east"][sides.x + 1]].filter { !$0.isEmpty }
        return parts.isEmpty ? "centre" : parts.joined(separator: "-")
    }

    private mutating func addTurn() {
        if options.rotation > 0 { texts.append("rotate:\(options.rotation)") }
        let axes = (options.flipsHorizontally ? "h" : "") + (options.flipsVertically ? "v" : "")
        if !axes.isEmpty { texts.append("flip:" + axes) }
    }

    // MARK: Look and margins

    private mutating func addLook() {
        if options.blur > 0 { texts.append("blur:\(Self.decimal(max(0.3, options.blur)))") }
        if options.sharpen > 0 { texts.append("sharpen:\(Self.decimal(max(0.3, options.sharpen)))") }
        if options.pixelate > 1 { texts.append("pixelate:\(Int(options.pixelate))") }
        if let background = options.background { texts.append("background:" + background) }
    }

    /// Adds both extensions and the padding as one step.
    private mutating func addExtensions(_ geometry: ImgproxyGeometry) {
        let padding = ImgproxyGeometry.padding(options, density)
        var (size, margins) = (geometry.visible, padding)
        if options.extends.isOn { Self.extend(&size, &margins, to: geometry.target, options.extends, density) }
        if let canvas = geometry.canvas {
            Self.extend(&size, &margins, to: canvas, options.extendsRatio, density)
        }
        addMargins(margins)
        self.size = size &+ PixelPair(padding[1] + padding[3], padding[0] + padding[2])
    }

    private static func extend(
        _ size: inout PixelPair, _ margins: inout SIMD4<Int>, to canvas: PixelPair,
        _ extension: ImgproxyOptions.Extension, _ density: Double
    ) {
        let extended = pointwiseMax(size, canvas)
        let gravity = `extension`.gravity
        let position = ImgproxyGeometry.position(of: size, in: extended, gravity, density: density)
        let rest = extended &- size &- position
        margins &+= SIMD4(position.y, rest.x, rest.y, position.x)
        size = extended
    }

    private mutating func addMargins(_ margins: SIMD4<Int>) {
        guard margins.max() > 0 else { return }
        texts.append("extend:\(margins[0]):\(margins[1]):\(margins[2]):\(margins[3])")
    }

    mutating func addWatermark(_ name: String?, opacity: Double) throws(ImgproxyProblem) {
        guard let name else { throw .invalidURL("`watermark`: no watermark is configured") }
        guard !options.watermark.isTiled || options.watermark.gravity.offset.min() >= 0 else {
            throw .invalidURL("`watermark`: gaps between tiles cannot be negative")
        }
        let (mark, picture) = (options.watermark, size ?? PixelPair())
        let value = mark.gravity.offset
        let isRelative = value.x != 0 && abs(value.x) < 1 || value.y != 0 && abs(value.y) < 1
        guard size != nil || !isRelative && mark.scale <= 1 else {
            throw Self.unknown("a `watermark` with a relative offset or a scale above 1")
        }
        let offset = ImgproxyGeometry.offset(value, in: picture, density)
            .clamped(lowerBound: PixelPair(repeating: -8192), upperBound: PixelPair(repeating: 8192))
        var text = "overlay:\(name)" + (mark.isTiled ? ":tile" : ":gravity=\(Self.name(mark.gravity.sides))")
        text += ":opacity=\(Self.decimal(opacity))"
        if mark.scale > 0, size != nil {
            let box = PixelPair(SIMD2(picture) * mark.scale, .toNearestOrEven)
            text += ":fit=\(pointwiseMax(box, PixelPair(1, 1)).text)"
        } else if mark.scale > 0 {
            text += ":scale=\(Self.decimal(max(0.01, mark.scale * 100)))pct"
        }
        if mark.isTiled {
            text += ":gap=\(offset.text)"
        } else if offset != .zero {
            text += ":offset=\(offset.text)"
        }
        texts.append(text)
    }

    // MARK: After trim, without the size

    /// Refuses options that need the size of the trimmed picture.
    private func checkTrimmed(_ limit: Int) throws(ImgproxyProblem) {
        let (size, extends) = (options.size, options.extends)
        let crops = options.crop != .zero
        let crop = crops ? cropGravity : ImgproxyOptions.Gravity()
        let hasFraction = (0..<2).contains { options.crop[$0] > 0 && options.crop[$0] < 1 }
        let isHalfSized = size.min() == 0 && size.max() > 0
        let refusals = [
            (options.gravity.offset != .zero || crop.offset != .zero, "offsets of `gravity`"),
            (crop.kind == .fp || hasFraction, "a relative `crop`"),
            (options.extendsRatio.isOn, "`extend_aspect_ratio`"),
            (extends.isOn && (size.min() == 0 || extends.gravity.offset != .zero), "`extend` with one edge or offsets"),
            (extends.isOn && extends.gravity.kind == .fp, "`extend` to a point"),
            (options.zoom != SIMD2(1, 1), "`zoom`"),
            (options.minimum != .zero, "`min-width` and `min-height`"),
            (limit > 0, "a maximum result dimension"),
            (options.type == .auto, "the resizing type `auto`"),
            (options.type == .force && isHalfSized, "the resizing type `force` with one edge"),
        ]
        if let (_, name) = refusals.first(where: \.0) { throw Self.unknown(name) }
    }

    private static func unknown(_ name: String) -> ImgproxyProblem {
        .invalidURL("`trim` cannot be combined with \(name), because the size of the trimmed picture is unknown")
    }

    private mutating func addTrim() {
        guard let trim = options.trim else { return }
        let equal = (trim.isEqualHorizontally ? "h" : "") + (trim.isEqualVertically ? "v" : "")
        texts.append(
            "trim:\(Int(trim.threshold.rounded()))" + (trim.color.map { ":colour=" + $0 } ?? "")
                + (equal.isEmpty ? "" : ":equal=" + equal))
        guard options.crop != .zero else { return }
        // A crop is clipped to the picture.
        let edges = PixelPair(options.crop.replacing(with: 65_535, where: options.crop .== 0), .down)
        let window = turn.backSize(pointwiseMin(edges, PixelPair(repeating: 65_535)))
        texts.append("crop:\(window.text)" + Self.argument(cropGravity, turn))
    }

    private mutating func addTrimmedResize() {
        let (box, up) = (trimmedBox, options.enlarges ? ":up" : "")
        let fills = box.min() > 0 && (options.type == .fill || options.type == .fillDown)
        if box == .zero {
            let factor = options.enlarges ? options.dpr : min(1, options.dpr)
            if factor != 1 { texts.append("scaled:\(Self.decimal(factor))") }
        } else if fills {
            texts.append(Self.thumbnail(box) + ":fill" + up + Self.argument(options.gravity, turn))
        } else {
            texts.append(Self.thumbnail(box) + (options.type == .force ? ":stretch" : "") + up)
        }
        addTurn()
    }

    /// The requested size in device pixels, before turning.
    private var trimmedBox: PixelPair {
        let least = PixelPair.zero.replacing(with: 1, where: SIMD2<Int>(options.size) .> 0)
        return turn.backSize(pointwiseMax(PixelPair(options.size * options.dpr), least))
    }

    /// Extends the picture with a second `thumbnail`, which does not resize, because the picture fits in the box.
    private mutating func addTrimmedExtension() {
        if options.extends.isOn {
            let box = Self.thumbnail(turn.backSize(trimmedBox))
            texts.append(box + ":pad" + Self.argument(options.extends.gravity, .none))
        }
        addMargins(ImgproxyGeometry.padding(options, density))
    }

    /// Returns a number as recipes contain it, without an exponent.
    private static func decimal(_ value: Double) -> String { value < 0.001 ? "0" : "\(value)" }
}
