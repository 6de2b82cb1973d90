/// Width and height in whole pixels, each ≥ 1.
struct PixelSize: Sendable, Hashable {
    var width: Int
    var height: Int

    var swapped: PixelSize { PixelSize(width: height, height: width) }

    /// Both edges times `numerator ÷ denominator`, each max(1, ⌊edge·s + ½⌋), computed in integers.
    func scaled(_ numerator: Int, _ denominator: Int) -> PixelSize {
        func edge(_ length: Int) -> Int { max(1, (2 * length * numerator + denominator) / (2 * denominator)) }
        return PixelSize(width: edge(width), height: edge(height))
    }

    /// Both edges times a decimal factor, rounded in the same way.
    func scaled(by factor: Double) -> PixelSize {
        // Factors are whole millionths, so the product is exact: 100 × 1.005 is 100.5 and rounds up.
        PixelSize(width: PlainNumber.scaled(width, by: factor), height: PlainNumber.scaled(height, by: factor))
    }
}

struct PixelRectangle: Sendable, Hashable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int
}

/// The arithmetic of `thumbnail` (docs/recipes.md): the size the picture is scaled to, and what is cropped or padded.
struct ThumbnailGeometry: Sendable, Hashable {
    /// The size the whole picture is scaled to.
    var scaled: PixelSize
    /// The size after cropping (`fill`) or padding (`pad`); otherwise equal to `scaled`.
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
                // Shrink the box by min(w/W, h/H, 1), so that covering it enlarges nothing.
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

    /// s = min(W/w, H/h, 1); the 1 applies only if nothing may be enlarged.
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
    /// Where a window of size `inner` lies in `outer` (or a picture of size `inner` on a canvas of size `outer`).
    /// Content-aware gravities count as the centre here.
    func rectangle(_ inner: PixelSize, in outer: PixelSize) -> PixelRectangle {
        let (spareX, spareY) = (outer.width - inner.width, outer.height - inner.height)
        var (x, y) = (spareX / 2, spareY / 2)
        switch self {
        case .focus(let focusX, let focusY):
            x = Int((focusX * Double(outer.width) - Double(inner.width) / 2).rounded())
            y = Int((focusY * Double(outer.height) - Double(inner.height) / 2).rounded())
        case .gravity(let gravity):
            switch gravity {
            case .centre, .attention, .entropy: break
            case .north: y = 0
            case .south: y = spareY
            case .west: x = 0
            case .east: x = spareX
            case .northWest: (x, y) = (0, 0)
            case .northEast: (x, y) = (spareX, 0)
            case .southWest: (x, y) = (0, spareY)
            case .southEast: (x, y) = (spareX, spareY)
            }
        }
        return PixelRectangle(
            x: min(max(x, 0), max(0, spareX)), y: min(max(y, 0), max(0, spareY)), width: inner.width,
            height: inner.height)
    }
}
