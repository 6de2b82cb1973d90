import Testing

@testable import Variants

@Suite struct NamedMaskTests {
    private func product(_ a: Double, _ b: Double) -> Double { (a * b / 255).rounded() }

    @Test(arguments: [false, true]) func `the alpha values of the picture and the mask are multiplied`(alpha: Bool)
        async throws
    {
        let picture = StepFixture.noise(18, 14, alpha: alpha, seed: 30)
        let mask = StepFixture.noise(18, 14, alpha: true, seed: 31)
        let result = try await StepFixture.render(picture, "mask:m", masks: ["m": StepFixture.png(mask)])
        for y in 0..<14 {
            for x in 0..<18 {
                var expected = picture[x, y]
                expected[3] = product(expected[3], mask[x, y][3])
                #expect(result[x, y] == expected)
            }
        }
    }

    /// A mask of 40 × 20, black left of `edge`, white right of it.
    private func edge(_ edge: Int) throws -> [UInt8] {
        try StepFixture.png(StepFixture.picture(40, 20) { x, _ in x < edge ? [0, 0, 0] : [255, 255, 255] })
    }

    @Test func `stretch scales both edges, cover keeps the ratio and the middle`() async throws {
        let picture = StepFixture.picture(20, 20) { _, _ in [9, 9, 9] }
        let masks = ["m": try edge(24)]
        let stretched = try await StepFixture.render(picture, "mask:m", masks: masks)
        let covering = try await StepFixture.render(picture, "mask:m:fit=cover", masks: masks)
        for y in 0..<20 {
            for x in 0..<20 {
                // 24 of 40 are 12 of 20; covered, 20 × 20 of the mask are seen, from its column 10 on.
                if abs(x - 12) > 1 { #expect(stretched[x, y][3] == (x < 12 ? 0 : 255)) }
                #expect(covering[x, y][3] == (x < 14 ? 0 : 255))
            }
        }
    }

    @Test func `a mask may have any format that originals have, and be upside down`() async throws {
        let picture = StepFixture.picture(30, 30) { _, _ in [1, 2, 3] }
        for name in ["balloon.gif", "balloon.webp", "forest.avif", "meadow.tiff", "exif-orientation-6.jpg"] {
            let bytes = try ProbeSampleTests.read("originals/" + name)
            let result = try await StepFixture.render(picture, "mask:m", masks: ["m": bytes])
            #expect(result.width == 30 && result.height == 30)
        }
        let upright = try await RenderSamples.pixels("exif-orientation-6.jpg", "thumbnail:30x30:stretch,grayscale")
        let turned = try await StepFixture.render(
            picture, "mask:m", masks: ["m": ProbeSampleTests.read("originals/exif-orientation-6.jpg")])
        let difference = zip(upright.values, turned.values).map { abs($0[0] - $1[3]) }.reduce(0, +) / 900
        #expect(difference < 12, "\(difference)")
    }

    @Test func `scaled masks are kept by bytes and form, the least recently used go first`() throws {
        let kept = ScaledPictures(byteLimit: 4000)
        func pixels(_ value: UInt8) -> NamedPixels {
            NamedPixels(
                storage: PixelStorage([UInt8](repeating: value, count: 900)), size: PixelSize(width: 30, height: 30))
        }
        let (star, blob) = ([UInt8]("star".utf8), [UInt8]("blob".utf8))
        kept.keep(pixels(1), of: star, "mask:stretch:30x30")
        kept.keep(pixels(2), of: blob, "mask:stretch:30x30")
        kept.keep(pixels(3), of: star, "mask:cover:30x30")
        #expect(kept.pixels(of: star, "mask:stretch:30x30")?.storage.bytes[0] == 1)
        #expect(kept.pixels(of: blob, "mask:stretch:30x30")?.storage.bytes[0] == 2)
        #expect(kept.pixels(of: star, "mask:cover:30x30")?.storage.bytes[0] == 3)
        #expect(kept.pixels(of: blob, "mask:cover:30x30") == nil)
        // Used just now, so another one goes.
        _ = kept.pixels(of: star, "mask:stretch:30x30")
        kept.keep(pixels(4), of: blob, "a")
        kept.keep(pixels(5), of: blob, "b")
        #expect(kept.pixels(of: blob, "mask:stretch:30x30") == nil)
        #expect(kept.pixels(of: star, "mask:stretch:30x30") != nil)
        // A mask that would evict all others is not kept.
        let large = NamedPixels(storage: PixelStorage(byteCount: 1001), size: PixelSize(width: 1001, height: 1))
        kept.keep(large, of: star, "large")
        #expect(kept.pixels(of: star, "large") == nil)
    }

    @Test func `a render takes the mask that was scaled before`() async throws {
        let picture = StepFixture.noise(21, 17, seed: 77)
        let mask = try StepFixture.png(StepFixture.noise(9, 9, alpha: true, seed: 78))
        let first = try await StepFixture.render(picture, "mask:m", masks: ["m": mask])
        #expect(ScaledPictures.shared.pixels(of: mask, "mask:stretch:21x17")?.storage.count == 21 * 17)
        #expect(try await StepFixture.render(picture, "mask:m", masks: ["m": mask]) == first)
    }
}
