import Glibc

/// The anti-aliased coverage of a rectangle with elliptical corners, computed exactly from the area of each pixel.
///
/// The coverage of a pixel is 1 minus the areas that the four corners remove. After clamping, the boxes of the corners
/// do not overlap, so the areas can be summed. Within a corner, with u and v measured outward from the ellipse's
/// center, the area inside is ∫ clamp(ry·√(1 − (u/rx)²) − v₀, 0, v₁ − v₀) du, which has a closed form.
struct RoundedRectangle: Sendable {
    /// The radii of a corner in pixels. 0 means a square corner.
    struct Corner: Sendable, Hashable {
        var rx: Double
        var ry: Double

        /// Returns half the width of the ellipse at distance `v` above or below its center.
        func reach(_ v: Double) -> Double { v >= ry ? 0 : rx * sqrt(1 - (v / ry) * (v / ry)) }
    }

    let width: Int
    let height: Int
    /// The corners, clockwise from the top left.
    let corners: [Corner]

    /// Creates a rectangle with radii clockwise from the top left. If adjacent corners overlap, all radii are reduced
    /// by the same factor (CSS Backgrounds 3, §4.5).
    init(width: Int, height: Int, radii: [EdgeLength]) {
        var lengths = radii.map { max(0, $0.pixels(of: min(width, height))) }
        var factor = 1.0
        for (first, second, side) in [(0, 1, width), (1, 2, height), (2, 3, width), (3, 0, height)] {
            let sum = lengths[first] + lengths[second]
            if sum > Double(side) { factor = min(factor, Double(side) / sum) }
        }
        lengths = lengths.map { $0 * factor }
        self.init(width: width, height: height, corners: lengths.map { Corner(rx: $0, ry: $0) })
    }

    /// Creates the ellipse that is inscribed in `width × height`.
    init(ellipse width: Int, height: Int) {
        let corner = Corner(rx: Double(width) / 2, ry: Double(height) / 2)
        self.init(width: width, height: height, corners: [corner, corner, corner, corner])
    }

    private init(width: Int, height: Int, corners: [Corner]) {
        self.width = width
        self.height = height
        self.corners = corners
    }

    /// Returns the coverage of each pixel in a row, 0…255.
    func coverage(row: Int) -> [UInt8] {
        var cut = [Double](repeating: 0, count: width)
        for (index, corner) in corners.enumerated() where corner.rx > 0 && corner.ry > 0 {
            let isRight = index == 1 || index == 2
            let isBottom = index >= 2
            // The distance of the row from the nearer edge determines v, which is measured outward from the ellipse's
            // center.
            let fromEdge = Double(isBottom ? height - 1 - row : row)
            let v1 = corner.ry - fromEdge
            guard v1 > 0 else { continue }
            let v0 = max(0, v1 - 1)
            let reach = corner.reach(v0)
            for column in 0..<min(width, Int(corner.rx.rounded(.up))) {
                let u1 = corner.rx - Double(column)
                let u0 = max(0, u1 - 1)
                let part = (u1 - u0) * (v1 - v0)
                let outside = u0 >= reach ? part : part - Self.inside(corner, u0, u1, v0, v1)
                let x = isRight ? width - 1 - column : column
                // Pixels closer to the center are not affected in this row.
                if outside <= 0 { break }
                cut[x] += outside
            }
        }
        return cut.map { $0 > 0 ? UInt8(((1 - min(1, $0)) * 255).rounded()) : 255 }
    }

    /// Returns the area of the part of [u0, u1] × [v0, v1] that is inside the quarter ellipse.
    static func inside(_ corner: Corner, _ u0: Double, _ u1: Double, _ v0: Double, _ v1: Double) -> Double {
        let (rx, ry) = (corner.rx, corner.ry)
        func integral(_ u: Double) -> Double {
            let t = min(1, max(0, u / rx))
            return rx * ry / 2 * (t * sqrt(1 - t * t) + asin(t))
        }
        // Up to `full` the curve is above the pixel. From `none` on it is below the pixel.
        let full = min(u1, max(u0, corner.reach(v1)))
        let none = min(u1, max(u0, corner.reach(v0)))
        let curved = integral(none) - integral(full) - v0 * (none - full)
        return (full - u0) * (v1 - v0) + max(0, curved)
    }

    /// Multiplies the alpha of `pixels` (four bands) by the coverage. Calls `check` before each row.
    func multiply<Failure: Error>(
        into pixels: UnsafeMutableBufferPointer<UInt8>, _ check: () throws(Failure) -> Void
    ) throws(Failure) {
        let top = max(corners[0].ry, corners[1].ry)
        let bottom = max(corners[2].ry, corners[3].ry)
        for row in 0..<height where Double(row) < top || Double(height - row) <= bottom + 1 {
            try check()
            for (x, coverage) in coverage(row: row).enumerated() where coverage < 255 {
                let at = (row * width + x) * 4 + 3
                pixels[at] = alphaProduct(pixels[at], coverage)
            }
        }
    }
}

/// Returns the product of two values in units of 1/255, rounded to the nearest unit.
func alphaProduct(_ a: UInt8, _ b: UInt8) -> UInt8 { UInt8((Int(a) * Int(b) + 127) / 255) }
