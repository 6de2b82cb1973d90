import Glibc

@testable import Variants

/// CIEDE2000 between pictures (ISO/CIE 11664-6; the formulas in the order of Sharma, Wu and Dalal, 2005).
enum ColorDifference {
    struct Lab {
        var l: Double
        var a: Double
        var b: Double

        init(l: Double, a: Double, b: Double) {
            self.l = l
            self.a = a
            self.b = b
        }

        /// From sRGB in 8 bits, white point D65.
        init(red: UInt8, green: UInt8, blue: UInt8) {
            let r = SRGBCurve.linear(Double(red) / 255)
            let g = SRGBCurve.linear(Double(green) / 255)
            let b = SRGBCurve.linear(Double(blue) / 255)
            func f(_ t: Double) -> Double { t > 216.0 / 24389 ? cbrt(t) : (24389.0 / 27 * t + 16) / 116 }
            let x = f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047)
            let y = f(0.2126729 * r + 0.7151522 * g + 0.0721750 * b)
            let z = f((0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883)
            self.init(l: 116 * y - 16, a: 500 * (x - y), b: 200 * (y - z))
        }
    }

    static func deltaE(_ p: Lab, _ q: Lab) -> Double {
        let radians = Double.pi / 180
        func saturation(_ c: Double) -> Double { (pow(c, 7) / (pow(c, 7) + pow(25, 7))).squareRoot() }
        let g = 0.5 * (1 - saturation((hypot(p.a, p.b) + hypot(q.a, q.b)) / 2))
        let (a1, a2) = (p.a * (1 + g), q.a * (1 + g))
        let (c1, c2) = (hypot(a1, p.b), hypot(a2, q.b))
        func hue(_ a: Double, _ b: Double) -> Double {
            if a == 0 && b == 0 { return 0 }
            let angle = atan2(b, a) / radians
            return angle < 0 ? angle + 360 : angle
        }
        let (h1, h2) = (hue(a1, p.b), hue(a2, q.b))
        var turn = c1 * c2 == 0 ? 0 : h2 - h1
        if turn > 180 { turn -= 360 }
        if turn < -180 { turn += 360 }
        let deltaL = q.l - p.l
        let deltaC = c2 - c1
        let deltaH = 2 * (c1 * c2).squareRoot() * sin(turn / 2 * radians)
        var h = h1 + h2
        if c1 * c2 != 0 {
            if abs(h1 - h2) <= 180 { h /= 2 } else { h = h < 360 ? (h + 360) / 2 : (h - 360) / 2 }
        }
        let l = (p.l + q.l) / 2
        let c = (c1 + c2) / 2
        let t1 = 1 - 0.17 * cos((h - 30) * radians) + 0.24 * cos(2 * h * radians)
        let t = t1 + 0.32 * cos((3 * h + 6) * radians) - 0.20 * cos((4 * h - 63) * radians)
        let theta = 30 * exp(-pow((h - 275) / 25, 2))
        let sl = 1 + 0.015 * pow(l - 50, 2) / (20 + pow(l - 50, 2)).squareRoot()
        let sc = 1 + 0.045 * c
        let sh = 1 + 0.015 * c * t
        let rt = -sin(2 * theta * radians) * 2 * saturation(c)
        let (x, y, z) = (deltaL / sl, deltaC / sc, deltaH / sh)
        return (x * x + y * y + z * z + rt * y * z).squareRoot()
    }

    /// The mean over all pixels, colours as they stand (alpha is not looked at where both are transparent); nil for
    /// different sizes.
    static func mean(_ first: PixelBuffer, _ second: PixelBuffer) -> Double? {
        guard first.width == second.width, first.height == second.height else { return nil }
        var sum = 0.0
        var count = 0
        first.pixels.withUnsafeBufferPointer { p in
            second.pixels.withUnsafeBufferPointer { q in
                for at in stride(from: 0, to: p.count, by: 4) where p[at + 3] > 0 || q[at + 3] > 0 {
                    count += 1
                    if p[at] == q[at], p[at + 1] == q[at + 1], p[at + 2] == q[at + 2] { continue }
                    sum += deltaE(
                        Lab(red: p[at], green: p[at + 1], blue: p[at + 2]),
                        Lab(red: q[at], green: q[at + 1], blue: q[at + 2]))
                }
            }
        }
        return count == 0 ? 0 : sum / Double(count)
    }

    /// The largest and mean difference of the alpha bands.
    static func alpha(_ first: PixelBuffer, _ second: PixelBuffer) -> (worst: Int, mean: Double) {
        let pairs = stride(from: 3, to: min(first.pixels.count, second.pixels.count), by: 4)
        let differences = pairs.map { abs(Int(first.pixels[$0]) - Int(second.pixels[$0])) }
        return (differences.max() ?? 0, Double(differences.reduce(0, +)) / Double(max(1, differences.count)))
    }
}
