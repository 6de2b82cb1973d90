import Testing

@testable import Variants

@Suite struct PNGOutputTests {
    /// Colour type and bit depth of a PNG, from its header.
    private func kind(_ png: [UInt8]) -> [Int] { [Int(png[25]), Int(png[24])] }

    private func encode(
        _ width: Int, _ height: Int, bands: Int, progressive: Bool = false, kept: KeptBlobs = KeptBlobs(),
        _ pixel: (Int, Int) -> [UInt8]
    ) throws -> (png: [UInt8], pixels: EncodablePixels) {
        try VipsLibrary.load()
        var bytes: [UInt8] = []
        for y in 0..<height { for x in 0..<width { bytes += pixel(x, y) } }
        let pixels = EncodablePixels(storage: PixelStorage(bytes), width: width, height: height, bands: bands)
        let output = ResolvedOutput(format: .png, isLossless: true, isProgressive: progressive)
        let job = EncodeJob(output: output, kept: kept, control: RenderControl())
        return (try PNGOutput(job: job).encode(pixels, quality: 100), pixels)
    }

    /// The pixels through libvips' loader, as RGBA; the encoder's input with black invisible pixels.
    private func check(_ png: [UInt8], _ pixels: EncodablePixels) async throws {
        let header = try ImageHeader.probe(png)
        #expect(header.width == pixels.width && header.height == pixels.height)
        let decoded = try await RenderSamples.decoded(png)
        let input = pixels.storage.array
        let expected = stride(from: 0, to: input.count, by: pixels.bands).flatMap { at -> [UInt8] in
            let alpha = pixels.bands == 4 ? input[at + 3] : 255
            return alpha == 0 ? [0, 0, 0, 0] : Array(input[at..<(at + 3)]) + [alpha]
        }
        #expect(decoded == PixelBuffer(width: pixels.width, height: pixels.height, pixels: expected))
    }

    @Test func `a PNG states no resolution unless one was asked for`() async throws {
        for recipe in ["thumbnail:20,png", "thumbnail:20,grayscale,png", "thumbnail:20,pixelate:10,png:progressive"] {
            let bytes = try RenderFixture.jpeg(RenderFixture.gradientImage(60, 40))
            let job = RenderFixture.job(bytes, .jpeg, 60, 40, try Recipe(recipe), ResolvedOutput(format: .png))
            let png = try await RenderFixture.renderer.render(job).bytes
            #expect(!png.indices.dropLast(3).contains { png[$0..<($0 + 4)].elementsEqual("pHYs".utf8) }, "\(recipe)")
            #expect(try await RenderSamples.decoded(png).width == 20)
        }
    }

    static let counts = [(1, 1), (2, 1), (3, 2), (4, 2), (5, 4), (16, 4), (17, 8), (200, 8), (256, 8)]

    @Test(arguments: counts, [false, true])
    func `few colours become a palette of as few bits as hold them`(count: (Int, Int), progressive: Bool) async throws {
        for (width, height) in [(37, 29), (1, 300), (300, 1), (64, 8)] {
            let (png, pixels) = try encode(width, height, bands: 3, progressive: progressive) { x, y in
                let index = (x * 7 + y * 13) % count.0
                return [UInt8(index), UInt8(255 - index), 77]
            }
            #expect(kind(png) == [3, progressive ? 8 : count.1])
            #expect(png[28] == (progressive ? 1 : 0))
            try await check(png, pixels)
        }
    }

    @Test func `a palette holds alpha, the transparent entries first`() async throws {
        let (png, pixels) = try encode(40, 30, bands: 4) { x, y in
            [UInt8(x * 5), 10, 200, x < 10 ? UInt8(y) : x > 30 ? 0 : 255]
        }
        #expect(kind(png) == [6, 8], "more than 256 colours")
        try await check(png, pixels)
        let (few, fewPixels) = try encode(40, 30, bands: 4) { x, y in
            [UInt8(x / 10 * 5), UInt8(y / 10), 200, x < 10 ? 128 : x > 30 ? 0 : 255]
        }
        #expect(kind(few) == [3, 4])
        let at = try #require(RenderOutputTests.chunks(ofPNG: few).firstIndex(of: "tRNS"))
        #expect(RenderOutputTests.chunks(ofPNG: few).firstIndex(of: "PLTE")! < at)
        #expect(few.contains("tRNS".utf8) && few.contains([0, 0, 0, 4] + Array("tRNS".utf8)))
        try await check(few, fewPixels)
    }

    @Test func `greys become grey, unless a profile of RGB is kept`() async throws {
        func gray(_ x: Int, _ y: Int) -> [UInt8] { [UInt8](repeating: UInt8((x * y + x) % 200), count: 3) }
        let (opaque, pixels) = try encode(60, 40, bands: 3) { gray($0, $1) }
        #expect(kind(opaque) == [0, 8])
        try await check(opaque, pixels)
        let (soft, softPixels) = try encode(60, 40, bands: 4) { gray($0, $1) + [UInt8($1 * 6 + 1)] }
        #expect(kind(soft) == [4, 8])
        try await check(soft, softPixels)
        let kept = KeptBlobs(profile: [UInt8](repeating: 1, count: 200))
        #expect(kind(try encode(60, 40, bands: 3, kept: kept) { gray($0, $1) }.png) == [3, 8])
        #expect(kind(try encode(60, 40, bands: 4, kept: kept) { gray($0, $1) + [UInt8($1 * 6 + 1)] }.png) == [6, 8])
    }

    @Test func `many colours stay RGB or RGBA, filtered, and smaller than unfiltered`() async throws {
        let (png, pixels) = try encode(120, 90, bands: 3) { RenderFixture.gradient($0, $1, 120, 90) }
        #expect(kind(png) == [2, 8])
        try await check(png, pixels)
        let plain = try pixels.image().saved(by: "pngsave_buffer", ["in": .image(pixels.image()), "strip": true])
        #expect(png.count < plain.count)
        let (soft, softPixels) = try encode(120, 90, bands: 4, progressive: true) { x, y in
            RenderFixture.gradient(x, y, 120, 90) + [UInt8(x)]
        }
        #expect(kind(soft) == [6, 8] && soft[28] == 1)
        try await check(soft, softPixels)
    }

    @Test func `a palette stands behind what is kept`() throws {
        let kept = KeptBlobs(exif: RenderOutputTests.tiff, profile: [1, 2, 3], xmp: RenderOutputTests.xmp)
        let png = try encode(9, 9, bands: 3, kept: kept) { x, _ in [UInt8(x), 0, 0] }.png
        let chunks = RenderOutputTests.chunks(ofPNG: png).filter { $0 != "pHYs" }
        #expect(chunks == ["IHDR", "iCCP", "eXIf", "iTXt", "PLTE", "IDAT", "IEND"])
    }
}
