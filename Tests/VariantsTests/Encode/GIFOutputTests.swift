import Testing

@testable import Variants

@Suite struct GIFOutputTests {
    private func render(_ image: Image, _ output: String = "gif") async throws -> RenderedVariant {
        try await RenderFixture.renderer.render(RenderSamples.job(RenderFixture.png(image), output))
    }

    @Test(arguments: [2, 16, 200, 255]) func `few colours are kept exactly`(count: Int) async throws {
        let image = try RenderFixture.image(64, 48) { x, y in
            let index = (x + y * 64) % count
            return [UInt8(index), UInt8(255 - index), UInt8(index * 7 % 256)]
        }
        let gif = try await render(image)
        #expect(try await RenderSamples.decoded(gif.bytes) == RenderSamples.decoded(RenderFixture.png(image)))
    }

    @Test func `alpha is all or nothing, with 128 the first that is seen`() async throws {
        let image = try RenderFixture.image(256, 4, bands: 4) { x, _ in [200, 30, 10, UInt8(x)] }
        let gif = try await render(image)
        #expect(gif.hasAlpha)
        let decoded = try await RenderSamples.decoded(gif.bytes)
        for x in 0..<256 { #expect(decoded.pixels[x * 4 + 3] == (x < 128 ? 0 : 255)) }
    }

    @Test func `XMP is kept as an application extension, and skipped over when read`() async throws {
        let original = try RenderOutputTests.tagged()
        let gif = try await RenderFixture.renderer.render(
            RenderSamples.job(original, "thumbnail:40x40,gif:keep=xmp"))
        #expect(gif.bytes.contains("XMP DataXMP".utf8 + RenderOutputTests.xmp))
        let header = try ImageHeader.probe(gif.bytes)
        #expect(header.pages == 1 && header.width == gif.width && header.height == gif.height)
        let plain = try await RenderFixture.renderer.render(RenderSamples.job(original, "thumbnail:40x40,gif"))
        #expect(try await RenderSamples.decoded(gif.bytes) == RenderSamples.decoded(plain.bytes))
    }

    @Test func `what a GIF cannot hold is refused when written out and dropped when chosen`() throws {
        for list in ["exif", "icc", "xmp+icc"] {
            let error = #expect(throws: RecipeError.self) { try Recipe("gif:keep=\(list)") }
            #expect(error?.description.contains("expected `keep=copyright+position+xmp`") == true)
        }
        let header = ImageHeader(format: .gif, encodedWidth: 4, encodedHeight: 4)
        #expect(try Recipe("original:keep=exif+xmp").resolvedOutput(for: header).keep == [.copyright, .xmp])
    }
}
