import Testing

@testable import Variants

/// `gravity=` and `focus=` of `thumbnail:…:fill` and `crop`.
@Suite struct FocusTests {
    @Test(arguments: [
        ("0.5x0.5", 30), ("0x0", 0), ("1x1", 60), ("0.25x0.9", 5), ("0.1x0.5", 0), ("0.7x0.2", 50), ("0.995x0", 60),
    ])
    func `focus keeps the point as close to the middle as the edges allow`(focus: String, left: Int) async throws {
        // 100 × 40, cut to 40 × 40 without resizing.
        let picture = StepFixture.noise(100, 40)
        let result = try await StepFixture.render(picture, "thumbnail:40x40:fill:focus=\(focus)")
        #expect(result == StepFixture.picture(40, 40) { x, y in picture[x + left, y].bytes })
        let turned = try await StepFixture.render(picture, "rotate:90,thumbnail:40x40:fill:focus=\(flipped(focus))")
        #expect(turned == StepFixture.picture(40, 40) { x, y in picture[y + left, 39 - x].bytes })
    }

    private func flipped(_ focus: String) -> String {
        focus.split(separator: "x").reversed().joined(separator: "x")
    }

    @Test(arguments: ["attention", "entropy"])
    func `content gravities find what there is to see, the same each time`(gravity: String) async throws {
        // Grey, and a colourful, busy patch around (150, 30).
        let noise = StepFixture.noise(200, 60, seed: 8)
        let picture = StepFixture.picture(200, 60) { x, y in
            (135...165).contains(x) && (15...45).contains(y) ? noise[x, y].bytes : [128, 128, 128]
        }
        for recipe in ["thumbnail:60x60:fill:gravity=\(gravity)", "crop:60x60:gravity=\(gravity)"] {
            let result = try await StepFixture.render(picture, recipe)
            #expect(result.width == 60 && result.height == 60)
            let seen = result.values.count { $0 != .init(128, 128, 128, 255) }
            #expect(seen > 31 * 31 * 8 / 10, "\(recipe): \(seen) of \(31 * 31) pixels of the patch")
            #expect(try await StepFixture.render(picture, recipe) == result)
        }
    }
}
