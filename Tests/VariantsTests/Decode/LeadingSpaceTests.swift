import Testing

@testable import Variants

/// Scripts of origins print line ends before a picture, which viewers skip.
@Suite struct LeadingSpaceTests {
    static let spaces: [[UInt8]] = [[13, 10], [10], [0x20, 9, 13, 10, 0x20], [UInt8](repeating: 10, count: 3000)]

    @Test(arguments: spaces) func `white space before a JPEG or PNG changes nothing`(_ space: [UInt8]) async throws {
        for name in ["exif-orientation-6.jpg", "balloon-palette.png"] {
            let bytes = try ProbeSampleTests.read("originals/" + name)
            let header = try ImageHeader.probe(bytes)
            #expect(try ImageHeader.probe(space + bytes) == header)
            #expect(ImageDetails.read(space + bytes, header) == ImageDetails.read(bytes, header))
            for recipe in ["thumbnail:40,png", "crop:20x20,jpeg:keep=exif"] {
                let plain = try await RenderFixture.renderer.render(RenderSamples.job(bytes, recipe))
                let spaced = try await RenderFixture.renderer.render(RenderSamples.job(space + bytes, recipe))
                #expect(plain.bytes == spaced.bytes, "\(name) \(recipe)")
            }
            var job = try RenderSamples.job("meadow-small.jpg", "thumbnail:60x60,overlay:logo,png")
            job.masks = [Recipe.overlayKey("logo"): bytes]
            let plain = try await RenderFixture.renderer.render(job)
            job.masks = [Recipe.overlayKey("logo"): space + bytes]
            #expect(try await RenderFixture.renderer.render(job).bytes == plain.bytes)
        }
    }

    @Test func `it is not skipped before other formats`() throws {
        for bytes in [[10] + (try ProbeSampleTests.read("originals/balloon.gif")), [10, 0xFF, 0xD8], [10, 13]] {
            let error = #expect(throws: RenderError.self) { try ImageHeader.probe(bytes) }
            #expect(error?.code == .notAnImage)
        }
    }
}
