import Testing

@testable import Variants

@Suite struct WebPOutputTests {
    private func render(_ bytes: [UInt8], _ recipe: String) async throws -> RenderedVariant {
        try await RenderFixture.renderer.render(RenderSamples.job(bytes, recipe))
    }

    @Test func `lossless keeps every pixel that is seen`() async throws {
        let image = try RenderFixture.image(70, 50, bands: 4) { x, y in
            RenderFixture.gradient(x, y, 70, 50) + [UInt8(x * 3)]
        }
        let png = try RenderFixture.png(image)
        let webp = try await render(png, "webp:lossless")
        #expect(
            try await AnimationTests.visible(RenderSamples.decoded(webp.bytes))
                == AnimationTests.visible(RenderSamples.decoded(png)))
    }

    /// A shape's alpha and a gradient's are distinguished; either is kept exactly.
    @Test func `alpha of a mask is stored as it is, that of a gradient is predicted where that is smaller`()
        async throws
    {
        func picture(_ alpha: (Int, Int) -> UInt8) throws -> [UInt8] {
            try RenderFixture.png(
                RenderFixture.image(120, 90, bands: 4) { x, y in
                    RenderFixture.gradient(x, y, 120, 90) + [alpha(x, y)]
                })
        }
        for (png, isPlain) in [
            (try picture { x, y in x * x + y * y < 4000 ? 255 : x * x + y * y < 4100 ? UInt8(40 + x + y) : 0 }, true),
            (try picture { x, y in UInt8(x * y / 42) }, false),
        ] {
            let decoded = try await RenderSamples.decoded(png)
            let pixels = EncodablePixels(
                storage: PixelStorage(decoded.pixels), width: decoded.width, height: decoded.height, bands: 4)
            #expect(try pixels.hasPlainAlpha(RenderControl()) == isPlain)
            let bytes = try await render(png, "webp").bytes
            // The filter stands in bits 2 and 3 of the chunk's first byte, behind eight of its header.
            let chunk = try #require(bytes.indices.first { bytes[$0...].starts(with: "ALPH".utf8) })
            #expect((bytes[chunk + 8] >> 2 & 3 == 0) == isPlain)
            let webp = try await RenderSamples.decoded(bytes)
            let alpha = { (pixels: [UInt8]) in stride(from: 3, to: pixels.count, by: 4).map { pixels[$0] } }
            #expect(alpha(webp.pixels) == alpha(decoded.pixels))
        }
    }

    @Test(arguments: ["webp", "webp:lossless"])
    func `an animation keeps metadata beside its frames`(output: String) async throws {
        let kept = KeptBlobs(exif: RenderOutputTests.tiff, xmp: RenderOutputTests.xmp)
        let plain = try await render(AnimationTests.sample.webp(), "frames:all,circle,\(output)").bytes
        let pixels = EncodablePixels(storage: PixelStorage(byteCount: 0), width: 26, height: 18, bands: 4)
        let tagged = kept.wrapped(webP: plain, pixels)
        let header = try ImageHeader.probe(tagged)
        #expect(header.pages == 5 && header.hasAlpha && header.orientation == 8)
        #expect(try AnimationTimes(tagged) == AnimationTimes(plain))
        #expect(try RenderSamples.frames(tagged) == RenderSamples.frames(plain))

        let again = try await render(tagged, "frames:all,flip:h,\(output):keep=exif+xmp").bytes
        #expect(again.contains(KeptBlobs.upright(RenderOutputTests.tiff)) && again.contains(RenderOutputTests.xmp))
        let stripped = try await render(tagged, "frames:all,flip:h,\(output)").bytes
        #expect(!stripped.contains("EXIF".utf8) && !stripped.contains("XMP ".utf8))
    }

    @Test func `edges beyond the format's are refused before encoding`() throws {
        let control = RenderControl()
        let job = EncodeJob(output: ResolvedOutput(format: .webp), kept: KeptBlobs(), control: control)
        let wide = EncodablePixels(
            storage: PixelStorage(byteCount: 16_384 * 3), width: 16_384, height: 1, bands: 3)
        let error = #expect(throws: RenderError.self) { try WebPOutput(job: job).encode(wide, quality: 80) }
        #expect(error?.code == .notApplicable)
    }
}
