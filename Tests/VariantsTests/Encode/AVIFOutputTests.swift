import Testing

@testable import Variants

@Suite struct AVIFOutputTests {
    @Test func `lossless is within one step of a channel`() async throws {
        for name in ["meadow-small.jpg", "balloon-alpha.png"] {
            let recipe = "thumbnail:150x150"
            let expected = try await RenderSamples.pixels(name, recipe)
            let variant = try await RenderFixture.renderer.render(RenderSamples.job(name, recipe + ",avif:lossless"))
            let decoded = try await RenderSamples.decoded(variant.bytes)
            #expect(decoded.width == expected.width && decoded.height == expected.height)
            for (a, b) in zip(decoded.pixels, expected.pixels) where abs(Int(a) - Int(b)) > 1 {
                Issue.record("\(name): \(a) for \(b)")
                break
            }
        }
    }

    @Test func `quality changes the size`() async throws {
        var sizes: [Int] = []
        for output in ["avif:20", "avif", "avif:80"] {
            sizes.append(
                try await RenderFixture.renderer.render(
                    RenderSamples.job("dusk-2mp.jpg", "thumbnail:100x100," + output)
                ).bytes.count)
        }
        #expect(sizes == sizes.sorted() && Set(sizes).count == 3)
    }

    @Test(arguments: ["meadow-small.jpg", "balloon-alpha.png"], [1, 2, 3, 4, 5, 6, 7])
    func `metadata of every kind is put in byte for byte, and the pixels stay`(name: String, kinds: Int) async throws {
        let plain = try await RenderFixture.renderer.render(RenderSamples.job(name, "thumbnail:40x40,avif")).bytes
        let profile = [UInt8](repeating: 7, count: 301)
        let kept = KeptBlobs(
            exif: kinds & 1 != 0 ? RenderOutputTests.tiff : nil, profile: kinds & 2 != 0 ? profile : nil,
            xmp: kinds & 4 != 0 ? RenderOutputTests.xmp : nil)
        let file = try kept.inserted(intoAVIF: plain)
        let header = try ImageHeader.probe(file)
        #expect(header.profileBytes == (kinds & 2 != 0 ? 301 : 0))
        #expect(header.hasAlpha == (name == "balloon-alpha.png"))
        try file.withUnsafeBytes { bytes in
            let image = try Decoding.open(bytes, .avif)
            #expect(image.blob("xmp-data") == kept.xmp)
            #expect(image.blob("icc-profile-data") == kept.profile)
            // libvips hands on EXIF with its prefix.
            #expect(image.blob("exif-data").map { Array($0.suffix(RenderOutputTests.tiff.count)) } == kept.exif)
        }
        // A malformed profile is ignored.
        #expect(try await RenderSamples.decoded(file) == RenderSamples.decoded(plain))
    }

    @Test func `a file of unknown structure is refused, whatever is wrong`() throws {
        let kept = KeptBlobs(exif: [1], profile: [2], xmp: [3])
        let handmade = HandmadeImages.heif(width: 40, height: 30)
        for file in [[], [1, 2, 3], handmade, Array(handmade.dropLast(30))] as [[UInt8]] {
            #expect(throws: RenderError.self) { try kept.inserted(intoAVIF: file) }
        }
    }
}
