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
            bits: bits, palette: bits > 8 ? [] : Array(BMPTests.gray.prefix(1 << bits)),
            pixel: { x, y in bits > 8 ? alpha << 24 | x << 16 | y << 8 | 9 : x % (1 << bits) })
        return bitmap.bitmap(isIcon: true) + (hasMask ? (0..<3).flatMap { _ in [0x80, 0, 0, 0] as [UInt8] } : [])
    }

    @Test func `the largest picture is shown, whatever the directory says`() async throws {
        let large = try Self.png(300, 20)
        for pictures in [[Self.bitmap(32), large], [large, Self.bitmap(32)]] {
            for isCursor in [false, true] {
                let file = HandmadeBMP.icon(pictures, isCursor: isCursor)
                let header = try ImageHeader.probe(file)
                #expect(
                    header == ImageHeader(format: .ico, encodedWidth: 300, encodedHeight: 20, pages: 2, hasAlpha: true))
                #expect(header.shownPage == "the largest picture")
                #expect(try await RenderSamples.decoded(file) == RenderSamples.decoded(large))
            }
        }
    }

    @Test func `among pictures of one size, the one with the most bits is shown`() async throws {
        let file = HandmadeBMP.icon([Self.bitmap(4), Self.bitmap(24), Self.bitmap(8)])
        #expect(try await RenderSamples.decoded(file) == RenderSamples.decoded(HandmadeBMP.icon([Self.bitmap(24)])))
    }

    @Test(arguments: [[4, 8, 32], [32, 8, 4], [8, 32, 4]])
    func `among PNGs of one size, the directory says which has the most bits`(bits: [Int]) async throws {
        let pictures = try bits.map { bits in
            try RenderFixture.png(RenderFixture.image(20, 20, bands: 4) { _, _ in [UInt8(bits), 9, 9, 255] })
        }
        let shown = try await RenderSamples.decoded(HandmadeBMP.icon(pictures, bits: bits))
        #expect(shown.pixels.prefix(4) == [32, 9, 9, 255])
        // In a cursor the field is a position.
        let cursor = try await RenderSamples.decoded(HandmadeBMP.icon(pictures, isCursor: true, bits: bits))
        #expect(cursor.pixels.prefix(4) == [UInt8(bits[0]), 9, 9, 255])
    }

    @Test(arguments: [false, true]) func `a length that is too short does not matter`(isPNG: Bool) async throws {
        let picture = isPNG ? try Self.png(30, 20) : Self.bitmap(24)
        let expected = try await RenderSamples.decoded(HandmadeBMP.icon([picture]))
        for missing in [1, 12, picture.count / 2, picture.count] {
            let file = HandmadeBMP.icon([picture, Self.bitmap(1)], missing: missing)
            #expect(try await RenderSamples.decoded(file) == expected, "\(missing)")
        }
        // A picture that lacks bytes in the file itself is refused.
        let cut = HandmadeBMP.icon([picture]).dropLast(picture.count / 2)
        let error = await #expect(throws: RenderError.self) { try await RenderSamples.decoded(Array(cut)) }
        #expect(error?.code == .undecodable)
    }

    @Test func `a PNG in an icon is mended like one in a file`() async throws {
        let png = try Self.png(30, 20)
        let at = try #require((0..<png.count - 4).first { png[$0...].starts(with: "IEND".utf8) }) - 4
        var damaged = png
        damaged[at - 1] ^= 0x55  // The last CRC of the pixels.
        let expected = try await RenderSamples.decoded(png)
        #expect(try await RenderSamples.decoded(HandmadeBMP.icon([damaged])) == expected)
    }

    @Test(arguments: [1, 4, 8, 24, 32]) func `what the mask says is transparent`(bits: Int) async throws {
        let picture = try await RenderSamples.decoded(HandmadeBMP.icon([Self.bitmap(bits)]))
        #expect(picture.width == 5 && picture.height == 3)
        for at in 0..<15 {
            let (x, y) = (at % 5, at / 5)
            let color = bits > 8 ? [UInt8(x), UInt8(y), 9] : BMPTests.gray[x % (1 << bits)]
            let found = picture.pixels[at * 4..<at * 4 + 4]
            #expect(found[found.startIndex + 3] == (x == 0 ? 0 : 255))
            if x > 0 { #expect(found.elementsEqual(color + [255])) }
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
