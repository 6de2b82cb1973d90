/// A width and height, or a horizontal and vertical distance, in whole pixels.
typealias PixelPair = SIMD2<Int>

extension PixelPair {
    /// Rounds to whole pixels, halves away from zero. Huge numbers are clamped, because no picture has such an edge.
    init(_ pair: SIMD2<Double>) {
        // Products of binary fractions can be just below a half: 331 ÷ (331 ÷ 165.5).
        self.init(pair * (1 + 1e-12), .toNearestOrAwayFromZero)
    }

    init(_ pair: SIMD2<Double>, _ rule: FloatingPointRoundingRule) {
        let whole = pair.rounded(rule).clamped(
            lowerBound: SIMD2<Double>(repeating: -1e9), upperBound: SIMD2<Double>(repeating: 1e9))
        self.init(Int(whole.x), Int(whole.y))
    }

    /// Whether both edges fit in `other`.
    func fits(in other: PixelPair) -> Bool { x <= other.x && y <= other.y }
    var text: String { "\(x)x\(y)" }
}

/// The sizes of the steps from an original to the result of an imgproxy URL. All sizes apply to the picture after its
/// EXIF orientation, rotation and mirroring.
struct ImgproxyGeometry: Sendable {
    /// The size after the crop.
    let cropped: PixelPair
    /// The size to which the cropped picture is scaled.
    private(set) var scaled = PixelPair()
    /// The requested size in device pixels. An edge that is 0 is not requested.
    private(set) var target = PixelPair()
    /// The size after cropping to the result.
    private(set) var result = PixelPair()
    /// The size of the canvas with the requested ratio, or nil if the picture is not extended to it.
    private(set) var canvas: PixelPair?
    /// The factor for offsets and padding.
    private(set) var density: Double
    /// The resizing type, which is never `auto`.
    let type: ImgproxyOptions.ResizingType

    /// - Parameters:
    ///   - original: the size of the original.
    ///   - limit: the maximum length of an edge of the result. 0 means no maximum.
    ///   - enlarges: whether the picture may become larger.
    init(_ options: ImgproxyOptions, original: PixelPair, limit: Int, enlarges: Bool) {
        cropped = Self.cropped(original, options.crop)
        let size = SIMD2<Double>(cropped)
        type = Self.type(options, size)
        var shrink = Self.shrink(options, type, size)
        density = options.dpr
        if !enlarges {
            let most = shrink.min()
            if most < 1 {
                shrink /= most
                if !options.extends.isOn { density /= most }
            }
            density = min(density, shrink.min())
        }
        shrink = Self.raised(shrink, to: options.minimum, size)
        var scale = 1 / pointwiseMin(shrink / density, size)
        settle(options, size, scale, enlarges)

        let edge = outer(options).max()
        guard limit > 0, edge > limit else { return }
        let factor = Double(limit) / Double(edge)
        scale = pointwiseMax(scale * factor, 1 / size)
        density *= factor
        settle(options, size, scale, enlarges)
    }

    /// An edge below 1 is a fraction of the picture's edge.
    private static func cropped(_ original: PixelPair, _ crop: SIMD2<Double>) -> PixelPair {
        let whole = SIMD2<Double>(original)
        var edges = pointwiseMax(SIMD2<Double>(PixelPair(crop * whole)), SIMD2(1, 1))
        edges.replace(with: crop.rounded(.down), where: crop .>= 1)
        edges.replace(with: whole, where: crop .== 0)
        return PixelPair(pointwiseMin(edges, whole))
    }

    /// `auto` fills if the picture and the box are both landscape or both portrait.
    private static func type(_ options: ImgproxyOptions, _ size: SIMD2<Double>) -> ImgproxyOptions.ResizingType {
        guard options.type == .auto else { return options.type }
        let box = options.size.replacing(with: size, where: options.size .== 0)
        return (size.x >= size.y) == (box.x >= box.y) ? .fill : .fit
    }

    /// Returns the factors by which the edges shrink to the requested size.
    private static func shrink(
        _ options: ImgproxyOptions, _ type: ImgproxyOptions.ResizingType, _ size: SIMD2<Double>
    ) -> SIMD2<Double> {
        var shrink = size / options.size.replacing(with: size, where: options.size .== 0)
        if shrink != SIMD2(1, 1), type != .force {
            if options.size.x == 0 {
                shrink.x = shrink.y
            } else if options.size.y == 0 {
                shrink.y = shrink.x
            } else {
                shrink = SIMD2(repeating: type == .fit ? shrink.max() : shrink.min())
            }
        }
        return shrink / options.zoom
    }

    /// Returns smaller factors, so that no edge becomes shorter than its minimum. The ratio stays the same.
    private static func raised(
        _ shrink: SIMD2<Double>, to minimum: SIMD2<Double>, _ size: SIMD2<Double>
    ) -> SIMD2<Double> {
        var shrink = shrink
        for axis in 0..<2 where minimum[axis] > 0 {
            let most = size[axis] / minimum[axis]
            if most < shrink[axis] { shrink *= most / shrink[axis] }
        }
        return shrink
    }

    /// Computes the sizes that depend on the scale.
    private mutating func settle(
        _ options: ImgproxyOptions, _ size: SIMD2<Double>, _ scale: SIMD2<Double>, _ enlarges: Bool
    ) {
        scaled = PixelPair(size * scale)
        target = PixelPair(options.size * options.zoom * density)
        result = target
        let (whole, wanted) = (SIMD2<Double>(scaled), SIMD2<Double>(target))
        if type == .fillDown, !enlarges {
            let lack = wanted / whole
            if lack.x > lack.y, lack.x > 1 {
                result = PixelPair(SIMD2(whole.x, whole.x * wanted.y / wanted.x))
            } else if lack.y > lack.x, lack.y > 1 {
                result = PixelPair(SIMD2(whole.y * wanted.x / wanted.y, whole.y))
            }
            // An edge that is 0 would not be cut.
            result = pointwiseMax(result, pointwiseMin(target, PixelPair(1, 1)))
        }
        canvas = nil
        guard options.extendsRatio.isOn, target.min() > 0 else { return }
        let visible = SIMD2<Double>(self.visible)
        let lack = wanted / visible
        if lack.y > lack.x {
            canvas = PixelPair(SIMD2(visible.x, visible.x * wanted.y / wanted.x))
        } else if lack.y < lack.x {
            canvas = PixelPair(SIMD2(visible.y * wanted.x / wanted.y, visible.y))
        }
    }

    /// The size of the picture without extensions and padding.
    var visible: PixelPair {
        PixelPair(
            result.x > 0 ? min(scaled.x, result.x) : scaled.x, result.y > 0 ? min(scaled.y, result.y) : scaled.y)
    }

    /// The padding in pixels: top, right, bottom, left.
    static func padding(_ options: ImgproxyOptions, _ density: Double) -> SIMD4<Int> {
        let rounded = (options.padding * density).rounded(.toNearestOrEven)
        return SIMD4<Int>(rounded.clamped(lowerBound: .zero, upperBound: SIMD4(repeating: 1e9)))
    }

    /// The size of the complete result.
    private func outer(_ options: ImgproxyOptions) -> PixelPair {
        var size = visible
        if options.extends.isOn { size = pointwiseMax(size, target) }
        if let canvas { size = pointwiseMax(size, canvas) }
        let padding = Self.padding(options, density)
        return size &+ PixelPair(padding[1] + padding[3], padding[0] + padding[2])
    }

    /// Returns the position of a window in a picture, or of a picture on a canvas.
    ///
    /// - Parameter density: the factor for offsets in pixels.
    static func position(
        of window: PixelPair, in picture: PixelPair, _ gravity: ImgproxyOptions.Gravity, density: Double
    ) -> PixelPair {
        let rest = picture &- window
        let position: PixelPair
        if gravity.kind == .fp {
            position =
                PixelPair(gravity.focus * SIMD2(picture), .toNearestOrEven) &- PixelPair(window.x / 2, window.y / 2)
        } else {
            let (offset, sides) = (offset(gravity.offset, in: picture, density), gravity.sides)
            let middle = PixelPair(SIMD2(rest &+ 1) / 2, .toNearestOrEven) &+ offset
            position = middle.replacing(with: offset, where: sides .== -1)
                .replacing(with: rest &- offset, where: sides .== 1)
        }
        return position.clamped(lowerBound: .zero, upperBound: pointwiseMax(rest, .zero))
    }

    /// Returns a distance in whole pixels. A value below 1 is a fraction of the picture's edge.
    static func offset(_ value: SIMD2<Double>, in picture: PixelPair, _ density: Double) -> PixelPair {
        let isWhole = (value .>= 1) .| (value .<= -1)
        let fraction = value * SIMD2(picture)
        return PixelPair(fraction.replacing(with: value * density, where: isWhole), .toNearestOrEven)
    }
}
