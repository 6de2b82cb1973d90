import Testing

@testable import Variants

/// `grayscale`, `tint`, `brightness`, `contrast` and `saturation`: each pixel on its own.
@Suite struct ColorStepsTests {
    private func check(
        _ recipe: String, within tolerance: Double = StepFixture.rounding,
        _ change: (StepFixture.Values) -> [Double]
    ) async throws {
        for alpha in [false, true] {
            let picture = StepFixture.noise(40, 25, alpha: alpha, seed: 3)
            let expected = picture.values.map { value in
                let color = change(value).map { min(255, max(0, $0)) }
                return StepFixture.Values(color[0], color[1], color[2], value[3])
            }
            let worst = StepFixture.worst(try await StepFixture.render(picture, recipe), expected)
            #expect(worst <= tolerance, "\(recipe): \(worst)")
        }
    }

    static let factors = [0, 0.35, 1, 1.5, 4]

    @Test(arguments: factors) func `brightness multiplies, as CSS has it`(factor: Double) async throws {
        try await check("brightness:\(factor)") { value in (0..<3).map { value[$0] * factor } }
    }

    @Test(arguments: factors) func `contrast stretches about the middle, as CSS has it`(factor: Double) async throws {
        try await check("contrast:\(factor)") { value in
            // slope = amount, intercept = −0.5 × amount + 0.5 (Filter Effects 1, §12)
            (0..<3).map { 255 * (value[$0] / 255 * factor + 0.5 - 0.5 * factor) }
        }
    }

    @Test(arguments: factors) func `saturation is the matrix of feColorMatrix`(s: Double) async throws {
        try await check("saturation:\(s)") { v in
            [
                (0.213 + 0.787 * s) * v[0] + (0.715 - 0.715 * s) * v[1] + (0.072 - 0.072 * s) * v[2],
                (0.213 - 0.213 * s) * v[0] + (0.715 + 0.285 * s) * v[1] + (0.072 - 0.072 * s) * v[2],
                (0.213 - 0.213 * s) * v[0] + (0.715 - 0.715 * s) * v[1] + (0.072 + 0.928 * s) * v[2],
            ]
        }
    }

    static func luminance(_ value: StepFixture.Values) -> Double {
        0.2126 * value[0] + 0.7152 * value[1] + 0.0722 * value[2]
    }

    @Test func `grayscale is the luminance of CSS grayscale`() async throws {
        try await check("grayscale") { [Double](repeating: Self.luminance($0), count: 3) }
    }

    @Test(arguments: ["704214", "ff0000", "0000ff", "000000", "ffffff", "123456"])
    func `tint keeps the luminance and gives the hue`(color: String) async throws {
        let number = try #require(Int(color, radix: 16))
        let tint = StepFixture.Values(
            Double(number >> 16), Double(number >> 8 & 255), Double(number & 255), 255)
        let middle = Self.luminance(tint)
        // Luminance is taken in 16 bits.
        try await check("tint:\(color)", within: 0.51) { value in
            let luminance = Self.luminance(value)
            return (0..<3).map { band in
                luminance < middle
                    ? tint[band] * luminance / middle
                    : middle == 255
                        ? 255 : tint[band] + (255 - tint[band]) * (luminance - middle) / (255 - middle)
            }
        }
        // A pixel with the color's own luminance becomes the color.
        let same = StepFixture.picture(2, 2) { _, _ in [UInt8(tint[0]), UInt8(tint[1]), UInt8(tint[2])] }
        #expect(try await StepFixture.render(same, "tint:\(color)") == same)
    }

    @Test func `a factor of one changes nothing`() async throws {
        let picture = StepFixture.noise(16, 16, alpha: true, seed: 5)
        for step in ["brightness:1", "contrast:1", "saturation:1"] {
            #expect(try await StepFixture.render(picture, step) == picture)
        }
    }
}
