import Testing

@testable import Variants

/// Read back by libvips' loader itself: JPEG XL is no format of originals.
@Suite struct JXLOutputTests {
    private func opened(_ bytes: [UInt8], _ body: (Image) throws -> Void) throws {
        try bytes.withUnsafeBytes { try body(VipsCall("jxlload_buffer", ["buffer": .bytes($0)]).image()) }
    }

    @Test(arguments: ["jxl", "jxl:95", "jxl:lossless"], ["dunes-2mp.jpg", "balloon-alpha.png"])
    func `a JPEG XL decodes back to the picture`(output: String, name: String) async throws {
        let expected = try await RenderSamples.pixels(name, "thumbnail:120x120")
        let variant = try await RenderFixture.renderer.render(RenderSamples.job(name, "thumbnail:120x120," + output))
        #expect(variant.width == expected.width && variant.height == expected.height)
        try opened(variant.bytes) { image in
            #expect(image.width == expected.width && image.height == expected.height)
            #expect(image.hasAlpha == variant.hasAlpha && variant.hasAlpha == name.contains("alpha"))
            let pixels = PixelBuffer(
                width: image.width, height: image.height,
                pixels: try image.withAlpha().computed(RenderControl()).array)
            if output == "jxl:lossless" {
                #expect(AnimationTests.visible(pixels) == AnimationTests.visible(expected))
            } else {
                let seen = try #require(
                    ColorDifference.mean(RenderOutputTests.onGray(pixels), RenderOutputTests.onGray(expected)))
                #expect(seen < 3)
            }
        }
    }

    @Test func `the lowest qualities give the smallest files`() async throws {
        func size(_ quality: Int) async throws -> Int {
            let job = try RenderSamples.job("dunes-2mp.jpg", "thumbnail:300x300,jxl:\(quality)")
            return try await RenderFixture.renderer.render(job).bytes.count
        }
        let usual = try await size(40)
        for quality in [1, 4, 5] { #expect(try await size(quality) < usual) }
    }

    @Test func `EXIF and XMP stand in boxes around the codestream, the profile inside`() async throws {
        let original = try RenderOutputTests.tagged()
        let kept = try await RenderFixture.renderer.render(
            RenderSamples.job(original, "profile:keep,thumbnail:60x60,jxl:lossless:keep=exif+xmp"))
        #expect(kept.bytes.contains("Exif\0\0\0\0".utf8 + KeptBlobs.upright(RenderOutputTests.tiff)[..<4]))
        #expect(kept.bytes.contains("xml ".utf8 + RenderOutputTests.xmp))
        try opened(kept.bytes) { image in
            #expect(image.width == kept.width && image.height == kept.height && image.has("icc-profile-data"))
        }
        let stripped = try await RenderFixture.renderer.render(
            RenderSamples.job(original, "thumbnail:60x60,jxl:lossless"))
        #expect(stripped.bytes.starts(with: [0xFF, 0x0A]))
    }
}
