import Glibc

@testable import Variants

/// Lanczos with three lobes in doubles, edges repeated; opaque pictures only. The share `linear` of the added light
/// follows the sRGB curve; the rest is the stored value.
enum LinearLightReference {
    static func resized(_ source: PixelBuffer, width: Int, height: Int, linear: Double = 1) -> PixelBuffer {
        let curve = (0..<256).map { self.light(Double($0) / 255, linear) }
        var light = [Double](repeating: 0, count: source.width * source.height * 3)
        for index in 0..<(source.width * source.height) {
            for band in 0..<3 { light[index * 3 + band] = curve[Int(source.pixels[index * 4 + band])] }
        }
        let columns = taps(source.width, width)
        let rows = taps(source.height, height)
        var narrow = [Double](repeating: 0, count: width * source.height * 3)
        for y in 0..<source.height {
            for x in 0..<width {
                var sum = (0.0, 0.0, 0.0)
                for (at, weight) in columns[x] {
                    let from = (y * source.width + at) * 3
                    sum.0 += light[from] * weight
                    sum.1 += light[from + 1] * weight
                    sum.2 += light[from + 2] * weight
                }
                let to = (y * width + x) * 3
                (narrow[to], narrow[to + 1], narrow[to + 2]) = sum
            }
        }
        var pixels = [UInt8](repeating: 255, count: width * height * 4)
        for y in 0..<height {
            for x in 0..<width {
                for band in 0..<3 {
                    var sum = 0.0
                    for (at, weight) in rows[y] { sum += narrow[(at * width + x) * 3 + band] * weight }
                    let value = stored(max(0, min(1, sum)), linear) * 255
                    pixels[(y * width + x) * 4 + band] = UInt8(value.rounded())
                }
            }
        }
        return PixelBuffer(width: width, height: height, pixels: pixels)
    }

    static func light(_ stored: Double, _ linear: Double) -> Double {
        linear * SRGBCurve.linear(stored) + (1 - linear) * stored
    }

    /// The inverse, by bisection.
    static func stored(_ light: Double, _ linear: Double) -> Double {
        var (low, high) = (0.0, 1.0)
        for _ in 0..<50 {
            let middle = (low + high) / 2
            if self.light(middle, linear) < light { low = middle } else { high = middle }
        }
        return (low + high) / 2
    }

    /// For each result index the source indices and their weights.
    private static func taps(_ from: Int, _ to: Int) -> [[(Int, Double)]] {
        let factor = Double(from) / Double(to)
        let stretch = max(1, factor)
        return (0..<to).map { index in
            let center = (Double(index) + 0.5) * factor - 0.5
            let first = Int((center - 3 * stretch).rounded(.up))
            let last = Int((center + 3 * stretch).rounded(.down))
            let weights = (first...last).map { at in (at, lanczos((Double(at) - center) / stretch)) }
            let sum = weights.reduce(0) { $0 + $1.1 }
            return weights.map { (max(0, min(from - 1, $0.0)), $0.1 / sum) }
        }
    }

    private static func lanczos(_ x: Double) -> Double {
        if x == 0 { return 1 }
        if abs(x) >= 3 { return 0 }
        let t = Double.pi * x
        return 3 * sin(t) * sin(t / 3) / (t * t)
    }
}
