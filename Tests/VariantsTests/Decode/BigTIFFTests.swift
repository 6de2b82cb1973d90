import Testing

@testable import Variants

@Suite struct BigTIFFTests {
    @Test func `a BigTIFF is rendered like the same picture in a TIFF`() async throws {
        let picture = try RenderFixture.gradientImage(60, 40)
        var results: [[UInt8]] = []
        for isBig in [false, true] {
            let bytes = try VipsCall("tiffsave_buffer", ["in": .image(picture), "bigtiff": .bool(isBig)]).bytes()
            #expect(bytes[2] == (isBig ? 43 : 42))
            let header = try ImageHeader.probe(bytes)
            #expect(header.format == .tiff && header.width == 60 && header.height == 40 && !header.hasAlpha)
            let job = RenderFixture.job(
                bytes, .tiff, 60, 40, try Recipe("thumbnail:30"), ResolvedOutput(format: .png, isLossless: true))
            results.append(try await RenderFixture.renderer.render(job).bytes)
        }
        #expect(results[0] == results[1])
    }
}
