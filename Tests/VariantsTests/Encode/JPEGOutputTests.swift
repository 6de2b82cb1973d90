import Testing

@testable import Variants

@Suite struct JPEGOutputTests {
    /// The markers before the first scan's data, and the sampling byte of the first component.
    private func structure(_ jpeg: [UInt8]) -> (markers: [UInt8], sampling: UInt8?) {
        var (markers, sampling, at): ([UInt8], UInt8?, Int) = ([], nil, 2)
        while at + 4 <= jpeg.count, jpeg[at] == 0xFF {
            markers.append(jpeg[at + 1])
            if jpeg[at + 1] == 0xC0 || jpeg[at + 1] == 0xC2 { sampling = jpeg[at + 11] }
            if jpeg[at + 1] == 0xDA { break }
            at += 2 + Int(jpeg[at + 2]) << 8 + Int(jpeg[at + 3])
        }
        return (markers, sampling)
    }

    private func render(_ output: String) async throws -> [UInt8] {
        try await RenderFixture.renderer.render(RenderSamples.job("dusk-2mp.jpg", "thumbnail:300x300," + output)).bytes
    }

    @Test func `chroma has half the resolution below quality 90 only`() async throws {
        for (output, sampling) in [("jpeg", UInt8(0x22)), ("jpeg:89", 0x22), ("jpeg:90", 0x11), ("jpeg:100", 0x11)] {
            #expect(structure(try await render(output)).sampling == sampling)
        }
    }

    @Test func `Huffman tables are made for the picture`() async throws {
        let ours = try await render("jpeg")
        let pixels = try await RenderFixture.renderer.pixels(RenderSamples.job("dusk-2mp.jpg", "thumbnail:300x300"))
        let image = try Image(
            PixelStorage(pixels.pixels), width: pixels.width, height: pixels.height, bands: 4)
        let opaque = try VipsCall("extract_band", ["in": .image(image), "band": 0, "n": 3]).image().labeled("srgb")
        let standard = try RenderFixture.jpeg(opaque, quality: 80)
        #expect(ours.count < standard.count)
        #expect(try await RenderSamples.decoded(ours) == RenderSamples.decoded(standard))
    }

    @Test func `progressive files are progressive, others are not`() async throws {
        #expect(structure(try await render("jpeg:progressive")).markers.contains(0xC2))
        #expect(structure(try await render("jpeg")).markers.contains(0xC0))
        #expect(try ImageHeader.probe(try await render("jpeg:progressive")).scans > 1)
    }
}
