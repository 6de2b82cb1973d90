import Testing

@testable import Variants

/// Rounded corners and ellipses at the edge of the picture, and what a JPEG makes of them.
@Suite struct MaskEdgeTests {
    private func coverage(_ recipe: String, _ width: Int, _ height: Int) async throws -> PixelBuffer {
        try await StepFixture.render(StepFixture.picture(width, height) { _, _ in [7, 7, 7] }, recipe)
    }

    /// Radii in pixels after CSS's clamping: all shrink by the factor of the tightest side.
    private func clamped(_ radii: [Double], _ width: Int, _ height: Int) -> [Double] {
        let sides = [
            (radii[0] + radii[1], width), (radii[1] + radii[2], height), (radii[2] + radii[3], width),
            (radii[3] + radii[0], height),
        ]
        let factor = sides.map { $0.0 > 0 ? min(1, Double($0.1) / $0.0) : 1 }.min() ?? 1
        return radii.map { $0 * factor }
    }

    private func isInside(_ x: Double, _ y: Double, _ width: Int, _ height: Int, _ corners: [Double]) -> Bool {
        for (index, radius) in corners.enumerated() {
            let u = radius - (index == 1 || index == 2 ? Double(width) - x : x)
            let v = radius - (index >= 2 ? Double(height) - y : y)
            if u > 0, v > 0, u * u + v * v > radius * radius { return false }
        }
        return true
    }

    static let shapes: [(String, Int, Int, [Double])] = [
        ("rounded-mask:50pct", 21, 21, [10.5, 10.5, 10.5, 10.5]),
        ("rounded-mask:50pct", 31, 20, [10, 10, 10, 10]), ("rounded-mask:50pct", 20, 31, [10, 10, 10, 10]),
        ("rounded-mask:10pct:20pct:30pct:40pct", 33, 27, [2.7, 5.4, 8.1, 10.8]),
        ("rounded-mask:8192", 25, 18, [8192, 8192, 8192, 8192]), ("rounded-mask:0.5", 9, 9, [0.5, 0.5, 0.5, 0.5]),
        ("rounded-mask:30:0:0:0", 24, 24, [30, 0, 0, 0]), ("rounded-mask:100pct:100pct:0:0", 23, 19, [19, 19, 0, 0]),
        ("rounded-mask:7:20:3:16", 26, 22, [7, 20, 3, 16]), ("rounded-mask:50pct", 1, 1, [0.5, 0.5, 0.5, 0.5]),
        ("rounded-mask:3", 2, 40, [3, 3, 3, 3]),
    ]

    @Test(arguments: shapes) func `corners cover what supersampling finds, clamped as CSS does`(
        recipe: String, width: Int, height: Int, radii: [Double]
    ) async throws {
        let corners = clamped(radii, width, height)
        let result = try await coverage(recipe, width, height)
        var worst = 0.0
        for y in 0..<height {
            for x in 0..<width {
                var inside = 0
                for part in 0..<1024 {
                    let px = Double(x) + (Double(part % 32) + 0.5) / 32
                    let py = Double(y) + (Double(part / 32) + 0.5) / 32
                    inside += isInside(px, py, width, height, corners) ? 1 : 0
                }
                worst = max(worst, abs(result[x, y][3] - Double(inside) * 255 / 1024))
            }
        }
        // 32 × 32 samples are themselves off by about a sample of each row.
        #expect(worst <= 3, "\(worst)")
    }

    @Test(arguments: ["circle", "rounded-mask:50pct", "rounded-mask:12", "mask:star", "rotate:20"], [255, 0])
    func `a JPEG has no fringe of another colour around a mask`(step: String, ground: Int) async throws {
        let color = ground == 255 ? "ffffff" : "000000"
        // A picture of the background's own colour must show no edge at all, whatever lies under the mask.
        let same = StepFixture.picture(61, 61) { _, _ in [UInt8(ground), UInt8(ground), UInt8(ground)] }
        let star = try ProbeSampleTests.read("masks/star.png")
        for recipe in ["\(step),background:\(color),jpeg:100", "\(step),jpeg:100"]
        where !recipe.hasPrefix("\(step),jpeg") || ground == 255 {
            var job = try StepFixture.job(same, recipe)
            job.masks = ["star": star]
            let flat = try await RenderSamples.decoded(RenderFixture.renderer.render(job).bytes)
            #expect(flat.values.allSatisfy { abs($0[0] - Double(ground)) <= 2 }, "\(recipe)")
        }
        // Another colour lies between the two by its alpha, never beyond either.
        let gray = StepFixture.picture(61, 61) { _, _ in [128, 128, 128] }
        let masked = try await StepFixture.render(gray, step, masks: ["star": star])
        let flat = try await StepFixture.render(gray, "\(step),background:\(color)", masks: ["star": star])
        for (before, after) in zip(masked.values, flat.values) {
            let share = before[3] / 255
            #expect(after[3] == 255)
            #expect(abs(after[0] - (128 * share + Double(ground) * (1 - share))) <= 1)
        }
    }

    @Test func `a thumbnail of a masked picture has no fringe either`() async throws {
        let picture = StepFixture.picture(120, 120) { _, _ in [250, 250, 250] }
        for quality in RenderQuality.allCases {
            let result = try await StepFixture.render(picture, "circle,thumbnail:40:resample=\(quality.rawValue)")
            for value in result.values where value[3] >= 4 { #expect(abs(value[0] - 250) <= 3) }
        }
    }

    @Test func `a translucent background lies under what is there`() async throws {
        let picture = StepFixture.noise(30, 20, alpha: true, seed: 12)
        let result = try await StepFixture.render(picture, "background:0a14c880")
        let expected = picture.values.map { value in
            let (share, rest) = (value[3] / 255, (1 - value[3] / 255) * 128 / 255)
            var mixed = (value * share + StepFixture.Values(10, 20, 200, 255) * rest) / (share + rest)
            mixed[3] = 255 * (share + rest)
            return mixed
        }
        let worst = StepFixture.worst(result, expected)
        #expect(worst <= StepFixture.rounding, "\(worst)")
    }
}
