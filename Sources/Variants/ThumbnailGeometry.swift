/// A width and height in whole pixels, each at least 1.
struct PixelSize: Sendable, Hashable {
    var width: Int
    var height: Int

    var swapped: PixelSize { PixelSize(width: height, height: width) }

    /// Returns both edges multiplied by `numerator ÷ denominator`. Each edge is max(1, ⌊edge·s + ½⌋), computed in
    /// integers.
    func scaled(_ numerator: Int, _ denominator: Int) -> PixelSize {
        func edge(_ length: Int) -> Int { max(1, (2 * length * numerator + denominator) / (2 * denominator)) }
        return PixelSize(width: edge(width), height: edge(height))
    }

    /// Returns both edges multiplied by a decimal factor, with the same rounding.
    func scaled(by factor: Double) -> PixelSize {
        // Factors are whole millionths, so the product is exact: 100 × 1.005 is 100.5 and is rounded up.
        PixelSize(width: PlainNumber.scaled(width, by: factor), height: PlainNumber.scaled(height, by: factor))
    }
}

struct PixelRectangle: Sendable, Hashable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int

    /// Returns the smallest rectangle that contains both rectangles.
    func union(_ other: PixelRectangle) -> PixelRectangle {
        let (left, top) = (min(x, other.x), min(y, other.y))
        return PixelRectangle(
            x: left, y: top, width: max(x + width, other.x + other.width) - left,
            height: max(y + height, other.y + other.height) - top)
    }
}

/// Computes the sizes for `thumbnail` (docs/recipes.md): the size to which the picture is scaled, and the size after
/// cropping or padding.
struct ThumbnailGeometry: Sendable, Hashable {
    /// The size to which the complete picture is scaled.
    var scaled: PixelSize
    /// The size after cropping (`fill`) or padding (`pad`). Otherwise equal to `scaled`.
    var output: PixelSize

    init(source: PixelSize, box: PixelBox, mode: Thumbnail.Mode, enlarges: Bool) {
        guard let boxWidth = box.width, let boxHeight = box.height else {
            scaled = Self.fit(source, box, enlarges)
            output = scaled
            return
        }
        switch mode {
        case .fit:
            scaled = Self.fit(source, box, enlarges)
            output = scaled
        case .pad:
            scaled = Self.fit(source, box, enlarges)
            output = PixelSize(width: boxWidth, height: boxHeight)
        case .stretch:
            scaled =
                enlarges
                ? PixelSize(width: boxWidth, height: boxHeight)
                : PixelSize(width: min(boxWidth, source.width), height: min(boxHeight, source.height))
            output = scaled
        case .fill:
            output = PixelSize(width: boxWidth, height: boxHeight)
            if !enlarges {
                // Shrink the box by min(w/W, h/H, 1), so that covering the box enlarges nothing.
                if source.width * boxHeight <= source.height * boxWidth {
                    if source.width < boxWidth { output = output.scaled(source.width, boxWidth) }
                } else if source.height < boxHeight {
                    output = output.scaled(source.height, boxHeight)
                }
            }
            let cover =
                output.width * source.height >= output.height * source.width
                ? source.scaled(output.width, source.width) : source.scaled(output.height, source.height)
            scaled = PixelSize(width: max(output.width, cover.width), height: max(output.height, cover.height))
        }
    }

    /// Returns the size scaled by s = min(W/w, H/h, 1). The 1 applies only if enlarging is not allowed.
    private static func fit(_ source: PixelSize, _ box: PixelBox, _ enlarges: Bool) -> PixelSize {
        let byWidth = box.width.map { (numerator: $0, denominator: source.width) }
        let byHeight = box.height.map { (numerator: $0, denominator: source.height) }
        var ratio = byWidth ?? byHeight ?? (1, 1)
        if let byHeight, byHeight.numerator * ratio.denominator < ratio.numerator * byHeight.denominator {
            ratio = byHeight
        }
        if !enlarges, ratio.numerator >= ratio.denominator { return source }
        return source.scaled(ratio.numerator, ratio.denominator)
    }
}

extension Anchor {
    /// Returns the position of a window of size `inner` in `outer`, or of a picture of size `inner` on a canvas of size
    /// `outer`. Content-aware gravities are treated as the center.
    func rectangle(_ inner: PixelSize, in outer: PixelSize) -> PixelRectangle {
        let (spareX, spareY) = (outer.width - inner.width, outer.height - inner.height)
        var (x, y) = (spareX / 2, spareY / 2)
        switch self {
        case .focus(let focusX, let focusY):
            x = Int((focusX * Double(outer.width) - Double(inner.width) / 2).rounded())
            y = Int((focusY * Double(outer.height) - Double(inner.height) / 2).rounded())
        case .gravity(let gravity):
            let sides = gravity.sides
            if sides.x != 0 { x = sides.x < 0 ? 0 : spareX }
            if sides.y != 0 { y = sides.y < 0 ? 0 : spareY }
        }
        return PixelRectangle(
            x: min(max(x, 0), max(0, spareX)), y: min(max(y, 0), max(0, spareY)), width: inner.width,
            height: inner.height)
    }
}
