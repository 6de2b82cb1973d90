import Testing

@testable import Variants

/// Every step over originals of every kind.
@Suite struct StepSamplesTests {
    static let samples = [
        "balloon-alpha.png", "balloon-palette.png", "balloon.gif", "balloon.webp", "cmyk.jpg", "cmyk-profile.jpg",
        "exif-orientation-6.jpg", "forest.avif", "grey.jpg", "meadow.tiff", "meadow-small.jpg", "moon-grey-alpha.png",
        "sky-16bit.png", "wide-gamut-p3.jpg",
    ]

    /// Each step with the size it leads to.
    static let steps: [(String, @Sendable (Int, Int) -> (Int, Int))] = [
        ("blur:2", { ($0, $1) }), ("blur:20", { ($0, $1) }), ("sharpen", { ($0, $1) }), ("pixelate:7", { ($0, $1) }),
        ("grayscale", { ($0, $1) }), ("tint:704214", { ($0, $1) }), ("brightness:1.2", { ($0, $1) }),
        ("contrast:0.8", { ($0, $1) }), ("saturation:2", { ($0, $1) }), ("extend:1:2:3:4", { ($0 + 6, $1 + 4) }),
        ("border:3:ff0000", { ($0 + 6, $1 + 6) }), ("rotate:90", { ($1, $0) }),
        (
            "rotate:45",
            { edge, other in
                let length = Int((Double(edge + other) * 0.5.squareRoot() - 1e-6).rounded(.up))
                return (length, length)
            }
        ),
        ("overlay:logo", { ($0, $1) }), ("overlay:logo:tile:scale=30pct:gap=2", { ($0, $1) }),
        ("mask:logo", { ($0, $1) }), ("rounded-mask:9:0:20pct:3", { ($0, $1) }),
        ("circle", { ($0, $1) }), ("trim:255", { ($0, $1) }),
        (
            "background:336699,rotate:30",
            { edge, other in
                let (width, height) = (Double(edge), Double(other))
                let cosine = 0.75.squareRoot()
                return (
                    Int((width * cosine + height * 0.5 - 1e-6).rounded(.up)),
                    Int((width * 0.5 + height * cosine - 1e-6).rounded(.up))
                )
            }
        ),
    ]

    @Test(arguments: samples) func `gives the size and alpha its rules say, and the pixels of its sRGB self`(
        name: String
    ) async throws {
        let logo = try StepFixture.png(StepFixture.noise(24, 16, alpha: true, seed: 5))
        let masks = ["logo": logo, "overlay:logo": logo]
        // Small, upright, sRGB in 8 bits: what every step gets to see.
        let base = "thumbnail:90x90:resample=fast"
        let settled = try await RenderSamples.pixels(name, base)
        let plain = try StepFixture.png(settled)
        let hasAlpha = settled.values.contains { $0[3] < 255 }
        for (step, size) in Self.steps {
            var job = try RenderSamples.job(name, "\(base),\(step),webp:lossless")
            job.masks = masks
            let variant = try await RenderFixture.renderer.render(job)
            let expected = size(settled.width, settled.height)
            #expect(variant.width == expected.0 && variant.height == expected.1, "\(step)")
            let effects = job.recipe.steps.map(\.alphaEffect)
            let mayHaveAlpha = Self.alpha(effects, hasAlpha)
            #expect(!hasAlpha || job.header.hasAlpha)
            #expect(variant.hasAlpha == mayHaveAlpha, "\(step)")

            var direct = try RenderSamples.job(plain, step)
            direct.masks = masks
            let pixels = try await RenderSamples.decoded(variant.bytes)
            let worst = StepFixture.worst(try await RenderFixture.renderer.pixels(direct), pixels.values)
            #expect(worst <= 1, "\(step): \(worst)")
        }
    }

    private static func alpha(_ effects: [AlphaEffect], _ original: Bool) -> Bool {
        var (alpha, isOpaque) = (original, false)
        for effect in effects {
            switch effect {
            case .keeps: break
            case .adds: alpha = true
            case .removes: alpha = false
            case .flattens(let opaque):
                isOpaque = opaque
                if opaque { alpha = false }
            case .uncovers: alpha = alpha || !isOpaque
            }
        }
        return alpha
    }

    @Test(arguments: ["exif-orientation-6.jpg", "sky-16bit.png", "cmyk.jpg", "grey.jpg"])
    func `a step that comes first sees the whole picture upright and in sRGB`(name: String) async throws {
        let plain = try await StepFixture.png(RenderSamples.pixels(name, ""))
        for step in ["trim", "pixelate:50", "brightness:1.4", "extend:5", "rotate:10", "blur:4"] {
            let direct = try await RenderFixture.renderer.pixels(RenderSamples.job(plain, step))
            #expect(try await RenderSamples.pixels(name, step) == direct, "\(step)")
        }
    }
}
