import Testing

@testable import Variants

/// The mix of pixels when pictures shrink, checked against its arithmetic.
@Suite struct LightTests {
    /// Black lines on white, one in eight columns: few bits a pixel.
    static func lines(_ width: Int = 512) throws -> [UInt8] {
        try RenderFixture.png(RenderFixture.image(width, 64) { x, _ in x % 8 == 3 ? [0, 0, 0] : [255, 255, 255] })
    }

    /// These lines with noise in the other half: as many bits a pixel as a photograph.
    static func noisyLines() throws -> [UInt8] {
        var state: UInt32 = 1
        return try RenderFixture.png(
            RenderFixture.image(512, 128) { x, y in
                state = state &* 1_664_525 &+ 1_013_904_223
                if y < 64 { return x % 8 == 3 ? [0, 0, 0] : [255, 255, 255] }
                return [UInt8(state >> 24), UInt8(state >> 16 & 255), UInt8(state >> 8 & 255)]
            })
    }

    /// The value of lines shrunk to a flat gray if `linear` of their light follows the sRGB curve.
    static func gray(_ linear: Double) -> Int {
        let light = 7.0 / 8 * LinearLightReference.light(1, linear)
        return Int((255 * LinearLightReference.stored(light, linear)).rounded())
    }

    /// The middle of the shrunk lines.
    private static func found(
        _ bytes: [UInt8], height: Int, _ step: String, light: RenderLight = .auto, format: ImageFormat = .png
    ) async throws -> Int {
        var job = RenderFixture.job(bytes, format, 512, height, try Recipe(step))
        job.light = light
        let pixels = try await RenderFixture.renderer.pixels(job)
        return Int(pixels.pixels[(pixels.height * 64 / height / 2 * pixels.width + pixels.width / 2) * 4])
    }

    @Test(arguments: ["thumbnail:64", "scaled:0.125"])
    func `drawings are shrunk nearly as stored, photographs nearly as light`(step: String) async throws {
        #expect(Self.gray(0) == 223 && Self.gray(1) == 240)
        let drawn = try await Self.found(Self.lines(), height: 64, step)
        #expect(abs(drawn - Self.gray(0.125)) <= 1, "\(drawn)")
        let noisy = try await Self.found(Self.noisyLines(), height: 128, step)
        #expect(abs(noisy - Self.gray(0.9375)) <= 1, "\(noisy)")
    }

    /// These lines above squares of two pixels in many colors, or above faint noise: about five bits a pixel.
    private static func undecided(isDrawn: Bool) throws -> [UInt8] {
        var random = SeededGenerator(seed: 9)
        let squares = (0..<64 * 256).map { _ in UInt32.random(in: 0..<1 << 24, using: &random) }
        let bytes = try RenderFixture.png(
            RenderFixture.image(512, 192) { x, y in
                if y < 64 { return x % 8 == 3 ? [0, 0, 0] : [255, 255, 255] }
                guard isDrawn else {
                    return y < 140
                        ? [UInt8](repeating: 100, count: 3)
                        : (0..<3).map { _ in UInt8.random(in: 96..<128, using: &random) }
                }
                let color = squares[(y - 64) / 2 * 256 + x / 2]
                return [UInt8(color >> 16), UInt8(color >> 8 & 255), UInt8(color & 255)]
            })
        let bits = Double(8 * bytes.count) / (512 * 192)
        try #require(bits > 4 && bits < 8, "\(bits) bits a pixel")
        return bytes
    }

    @Test func `where the bits of a file leave it open, noise tells a photograph from a drawing`() async throws {
        for (isDrawn, linear) in [(true, 0.125), (false, 0.9375)] {
            let bytes = try Self.undecided(isDrawn: isDrawn)
            let found = try await Self.found(bytes, height: 192, "thumbnail:64")
            #expect(abs(found - Self.gray(linear)) <= 1, "\(isDrawn): \(found)")
            // Renders that share a decode come to the same result.
            let jobs = try ["thumbnail:64", "thumbnail:32"].map {
                RenderFixture.job(bytes, .png, 512, 192, try Recipe($0 + ",png"))
            }
            let pictures = SharedPictures()
            for (job, alone) in zip(SharedDecodeTests.sharing(jobs, named: "drawing"), jobs) {
                let together = try SharedDecodeTests.render(job, pictures)
                let apart = try #require(
                    ColorDifference.mean(
                        try await RenderSamples.decoded(together.bytes),
                        try await RenderSamples.decoded(SharedDecodeTests.render(alone).bytes)))
                // The other light is 17 off in a third of the picture.
                #expect(apart <= 3, "\(isDrawn), \(job.recipe): \(apart)")
            }
            #expect(pictures.decodes == 1)
            // The frames of an animation of as many bits are all shrunk in one light.
            var animation = RenderFixture.job(
                bytes, .gif, 256, 192, try Recipe("frames:all,thumbnail:64,webp"),
                ResolvedOutput(format: .webp, quality: 80))
            animation.header.pages = 2
            try #require(animation.frameCount == 2)
            #expect(bytes.withUnsafeBytes { animation.isDrawn(ByteReader($0)) } == false)
            #expect(bytes.withUnsafeBytes { jobs[0].isDrawn(ByteReader($0)) } == nil)
        }
    }

    @Test(arguments: ["thumbnail:64", "scaled:0.125"])
    func `a step's light comes before the setting`(step: String) async throws {
        let lines = try Self.lines()
        for (option, setting, linear) in [
            ("", RenderLight.linear, 1.0), ("", .gamma, 0), (":light=linear", .gamma, 1), (":light=gamma", .linear, 0),
            (":light=auto", .linear, 0.125),
        ] {
            let found = try await Self.found(lines, height: 64, step + option, light: setting)
            #expect(abs(found - Self.gray(linear)) <= 1, "\(option) with \(setting): \(found)")
        }
    }

    @Test func `lossless files of drawings count as drawn in each format, lossy ones never`() async throws {
        let lines = try Self.lines()
        for (format, isLossless, linear) in [
            (ImageFormat.webp, true, 0.125), (.tiff, true, 0.125), (.gif, false, 0.125), (.jpeg, false, 0.9375),
            (.webp, false, 0.9375),
        ] {
            let output = ResolvedOutput(format: format, quality: 100, isLossless: isLossless)
            let job = RenderFixture.job(lines, .png, 512, 64, try Recipe(""), output)
            let bytes = try await RenderFixture.renderer.render(job).bytes
            let found = try await Self.found(bytes, height: 64, "thumbnail:64:resample=best", format: format)
            #expect(abs(found - Self.gray(linear)) <= 2, "\(format), lossless \(isLossless): \(found)")
        }
    }

    @Test func `renders of one decode have their own light`() async throws {
        let recipes = ["", ":light=linear", ":light=gamma"].flatMap { ["thumbnail:300" + $0, "thumbnail:90" + $0] }
        let pictures = SharedPictures()
        for job in try SharedDecodeTests.jobs("mountains-12mp.jpg", recipes) {
            var single = job
            single.shared = nil
            let together = try SharedDecodeTests.render(job, pictures)
            let alone = try SharedDecodeTests.render(single)
            #expect(together.width == alone.width && together.height == alone.height)
            let apart = try #require(
                ColorDifference.mean(
                    try await RenderSamples.decoded(together.bytes), try await RenderSamples.decoded(alone.bytes)))
            #expect(apart <= 0.6, "\(job.recipe): \(apart)")
        }
        #expect(pictures.decodes == 1)
    }
}
