import Testing

@testable import Variants

@Suite struct ICOTests {
    private static func png(_ width: Int, _ height: Int) throws -> [UInt8] {
        try RenderFixture.png(
            RenderFixture.image(width, height, bands: 4) { x, y in [UInt8(x & 255), UInt8(y), 9, 200] })
    }

    /// A bitmap of an icon with a mask that hides its first column.
    private static func bitmap(_ bits: Int, alpha: Int = 0, hasMask: Bool = true) -> [UInt8] {
        let bitmap = HandmadeBMP(
            bits: bits, palette: bits > 8 ? [] : Array(BMPTests.grey.prefix(1 << bits)),
            pixel: { x, y in bits > 8 ? alpha << 24 | x << 16 | y << 8 | 9 : x % (1 << bits) })
        return bitmap.bitmap(isIcon: true) + (hasMask ? (0..<3).flatMap { _ in [0x80, 0, 0, 0] as [UInt8] } : [])
    }

    @Test func `the largest picture is shown, whatever the directory says`() async throws {
        let large = try Self.png(300, 20)
        for pictures in [[Self.bitmap(32), large], [large, Self.bitmap(32)]] {
            for isCursor in [false, true] {
                let file = HandmadeBMP.icon(pictures, isCursor: isCursor)
                let header = try ImageHeader.probe(file)
                #expect(header == ImageHeader(format: .ico, width: 300, height: 20, pages: 2, hasAlpha: true))
                #expect(header.shownPage == "the largest picture")
                #expect(try await RenderSamples.decoded(file) == RenderSamples.decoded(large))
            }
        }
    }

    @Test func `among pictures of one size, the one with the most bits is shown`() async throws {
        let file = HandmadeBMP.icon([Self.bitmap(4), Self.bitmap(24), Self.bitmap(8)])
        #expect(try await RenderSamples.decoded(file) == RenderSamples.decoded(HandmadeBMP.icon([Self.bitmap(24)])))
    }

    @Test(arguments: [1, 4, 8, 24, 32]) func `what the mask says is transparent`(bits: Int) async throws {
        let picture = try await RenderSamples.decoded(HandmadeBMP.icon([Self.bitmap(bits)]))
        #expect(picture.width == 5 && picture.height == 3)
        for at in 0..<15 {
            let (x, y) = (at % 5, at / 5)
            let colour = bits > 8 ? [UInt8(x), UInt8(y), 9] : BMPTests.grey[x % (1 << bits)]
            let found = picture.pixels[at * 4..<at * 4 + 4]
            #expect(found[found.startIndex + 3] == (x == 0 ? 0 : 255))
            if x > 0 { #expect(found.elementsEqual(colour + [255])) }
        }
    }

    @Test func `alpha comes before the mask, which may be missing`() async throws {
        for hasMask in [true, false] {
            let file = HandmadeBMP.icon([Self.bitmap(32, alpha: 100, hasMask: hasMask)])
            let picture = try await RenderSamples.decoded(file)
            #expect(picture.pixels.prefix(4) == [0, 0, 9, 100])
        }
    }

    @Test func `one without a readable picture is refused`() throws {
        let huge = Self.bitmap(24).replacing([5, 0, 0, 0, 6, 0, 0, 0], with: [255, 255, 255, 127, 6, 0, 0, 0])
        let beyond = HandmadeBMP.icon([Self.bitmap(24)]).replacing([22, 0, 0, 0], with: [255, 255, 255, 255])
        for file in [HandmadeBMP.icon([[1, 2, 3]]), HandmadeBMP.icon([huge]), beyond] {
            let error = #expect(throws: RenderError.self) { try ImageHeader.probe(file) }
            #expect(error?.code == .undecodable && error?.message.contains("none of its pictures") == true)
        }
        let cut = HandmadeBMP.icon([Array(Self.bitmap(24).prefix(60))])
        #expect(try ImageHeader.probe(cut).width == 5)
    }
}
