import Testing

@testable import Variants

/// Colours beside the libvips commands and beside a resampler in doubles.
@Suite struct RenderFidelityTests {
    /// Pairs of the test data that come with Sharma, Wu and Dalal's paper.
    @Test(arguments: [
        (50.0, 2.6772, -79.7751, 50.0, 0.0, -82.7485, 2.0425), (50, 0, 0, 50, -1, 2, 2.3669),
        (50, 2.49, -0.001, 50, -2.49, 0.0011, 7.2195), (50, 2.5, 0, 73, 25, -18, 27.1492),
        (60.2574, -34.0099, 36.2677, 60.4626, -34.1751, 39.4387, 1.2644),
        (2.0776, 0.0795, -1.135, 0.9033, -0.0636, -0.5514, 0.9082),
    ])
    func `the colour difference agrees with the published pairs`(
        l1: Double, a1: Double, b1: Double, l2: Double, a2: Double, b2: Double, expected: Double
    ) {
        let found = ColorDifference.deltaE(.init(l: l1, a: a1, b: b1), .init(l: l2, a: a2, b: b2))
        #expect(abs(found - expected) < 0.0001)
    }

    static let photographs = [
        "mountains-12mp.jpg", "dusk-2mp.jpg", "forest-portrait.jpg", "meadow-small.jpg", "progressive.jpg",
        "grey.jpg", "exif-orientation-6.jpg", "exif-orientation-3.jpg", "night-tiny.jpg",
    ]

    @Test(.enabled(if: RenderSamples.hasCommands), arguments: photographs)
    func `fast thumbnails look like those of vipsthumbnail`(name: String) async throws {
        let ours = try await RenderSamples.pixels(name, "thumbnail:300x300")
        let theirs = try await RenderSamples.output(
            of: "vipsthumbnail", RenderSamples.path(name), "-s", "300x300>", "-o", "OUT[strip]")
        let difference = try #require(ColorDifference.mean(ours, theirs), "sizes differ")
        #expect(difference <= 1)
    }

    @Test(.enabled(if: RenderSamples.hasCommands), arguments: ["balloon-alpha.png", "moon-grey-alpha.png"])
    func `alpha is resized as vipsthumbnail does in linear light`(name: String) async throws {
        let ours = try await RenderSamples.pixels(name, "thumbnail:100x100:light=linear")
        let theirs = try await RenderSamples.output(
            of: "vipsthumbnail", RenderSamples.path(name), "-s", "100x100>", "--linear", "-o", "OUT[strip]")
        #expect(try #require(ColorDifference.mean(ours, theirs)) <= 1)
        #expect(ColorDifference.alpha(ours, theirs).mean <= 1)
    }

    @Test(.enabled(if: RenderSamples.hasCommands), arguments: ["wide-gamut-p3.jpg", "wide-gamut-adobe.jpg"])
    func `wide gamut becomes sRGB as libvips converts it`(name: String) async throws {
        let ours = try await RenderSamples.pixels(name, "")
        let theirs = try await RenderSamples.output(
            of: "vips", "icc_transform", RenderSamples.path(name), "OUT[strip]", "srgb", "--embedded")
        #expect(try #require(ColorDifference.mean(ours, theirs)) <= 0.5)
        // The profile does change the colours.
        let unconverted = try await RenderSamples.pixels(name, "profile:keep")
        #expect(try #require(ColorDifference.mean(unconverted, theirs)) > 0.5)
        // Converting after resizing gives nearly what converting before gives.
        for quality in RenderQuality.allCases {
            let small = try await RenderSamples.pixels(name, "thumbnail:150x150", quality: quality)
            let reference = try await RenderSamples.output(
                of: "vipsthumbnail", RenderSamples.path(name), "-s", "150x150", "--export-profile", "srgb", "-o",
                "OUT[strip]")
            #expect(try #require(ColorDifference.mean(small, reference)) <= 2)
        }
    }

    @Test(.enabled(if: RenderSamples.hasCommands), arguments: ["cmyk.jpg", "cmyk-profile.jpg"])
    func `CMYK becomes sRGB as libvips converts it`(name: String) async throws {
        let ours = try await RenderSamples.pixels(name, "")
        let theirs = try await RenderSamples.output(
            of: "vips", "icc_transform", RenderSamples.path(name), "OUT[strip]", "srgb", "--embedded",
            "--input-profile", "cmyk")
        #expect(try #require(ColorDifference.mean(ours, theirs)) <= 0.5)
        let small = try await RenderSamples.pixels(name, "thumbnail:200x200", quality: .balanced)
        let reference = LinearLightReference.resized(theirs, width: 200, height: 150)
        #expect(try #require(ColorDifference.mean(small, reference)) <= 1)
    }

    @Test(arguments: [
        ("meadow-small.jpg", RenderQuality.balanced), ("meadow-small.jpg", .best), ("night-tiny.jpg", .balanced),
        ("meadow.tiff", .balanced), ("grey.jpg", .balanced),
    ])
    func `balanced and best come near a linear light resampler in doubles`(
        name: String, quality: RenderQuality
    ) async throws {
        let source = try await RenderSamples.pixels(name, "")
        let ours = try await RenderSamples.pixels(name, "thumbnail:60x60", quality: quality)
        let reference = LinearLightReference.resized(source, width: ours.width, height: ours.height)
        #expect(try #require(ColorDifference.mean(ours, reference)) <= 0.8)
    }

    @Test func `linear light keeps the mean brightness of a fine pattern`() async throws {
        let bytes = try RenderFixture.png(
            RenderFixture.image(64, 64) { x, y in (x + y) % 2 == 0 ? [255, 255, 255] : [0, 0, 0] })
        let job = RenderFixture.job(
            bytes, .png, 64, 64, try Recipe("thumbnail:16:light=linear"),
            quality: .balanced)
        let pixels = try await RenderFixture.renderer.pixels(job)
        // Half the light is 188 in sRGB, not 128.
        for at in stride(from: 0, to: pixels.pixels.count, by: 4) { #expect(abs(Int(pixels.pixels[at]) - 188) <= 2) }
    }

    @Test func `sixteen bit originals come out in eight`() async throws {
        let whole = try await RenderSamples.pixels("sky-16bit.png", "")
        #expect(whole.width == 300 && whole.height == 200)
        for quality in RenderQuality.allCases {
            let small = try await RenderSamples.pixels("sky-16bit.png", "thumbnail:75x50", quality: quality)
            let reference = LinearLightReference.resized(whole, width: 75, height: 50)
            #expect(try #require(ColorDifference.mean(small, reference)) <= 1)
            #expect(small.pixels.allSatisfy { $0 > 0 } == reference.pixels.allSatisfy { $0 > 0 })
        }
    }

    @Test func `a palette with transparency keeps it`() async throws {
        let whole = try await RenderSamples.pixels("balloon-palette.png", "")
        #expect(whole.width == 240 && whole.height == 240)
        #expect(whole.pixels[3] == 0)
        for quality in RenderQuality.allCases {
            let variant = try await RenderFixture.renderer.render(
                RenderSamples.job("balloon-palette.png", "thumbnail:80x80,png", quality: quality))
            #expect(variant.hasAlpha && variant.width == 80)
            let pixels = try await RenderSamples.decoded(variant.bytes)
            #expect(pixels.pixels[3] == 0)
            #expect(pixels.pixels[(40 * 80 + 40) * 4 + 3] > 200)
        }
    }
}
