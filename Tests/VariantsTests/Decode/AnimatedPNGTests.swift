import Testing

@testable import Variants

/// PNG third edition §4.9 and §11.3.6: the default image belongs to an animation only if a frame control precedes it.
@Suite struct AnimatedPNGTests {
    private static func picture(_ width: Int, _ height: Int, bands: Int = 3, red: UInt8) throws -> [UInt8] {
        try RenderFixture.png(
            RenderFixture.image(width, height, bands: bands) { x, y in
                Array([red, UInt8(x * 9), UInt8(y * 9), 128].prefix(bands))
            })
    }

    private static func pixels(_ png: [UInt8]) -> [UInt8] {
        var data: [UInt8] = []
        png.withUnsafeBytes { bytes in
            PNGDecoder.forEachChunk(ByteReader(bytes)) { if $0 == "IDAT" { data += $1.all } }
        }
        return data
    }

    private static func control(_ number: Int, _ place: PixelRectangle) -> [UInt8] {
        let numbers = [number, place.width, place.height, place.x, place.y]
        return PNGChunk.bytes("fcTL", numbers.flatMap { Bytes.bigEndian($0) } + [0, 1, 0, 10, 0, 0])
    }

    /// A default image of 20 × 10 pixels, and one frame after it.
    private static func animation(
        _ still: [UInt8], _ frame: [UInt8], at place: PixelRectangle, hidesDefault: Bool = true, isAnimated: Bool = true
    ) -> [UInt8] {
        let full = PixelRectangle(x: 0, y: 0, width: 20, height: 10)
        let first = hidesDefault ? [] : control(0, full)
        let count = Bytes.bigEndian(hidesDefault ? 1 : 2) + Bytes.bigEndian(0)
        return Array(still[..<33]) + (isAnimated ? PNGChunk.bytes("acTL", count) : []) + first
            + PNGChunk.bytes("IDAT", pixels(still)) + control(1, place)
            + PNGChunk.bytes("fdAT", Bytes.bigEndian(2) + pixels(frame)) + PNGChunk.bytes("IEND", [])
    }

    private static let whole = PixelRectangle(x: 0, y: 0, width: 20, height: 10)

    @Test(arguments: [3, 4]) func `the first frame is shown instead of a hidden default image`(
        bands: Int
    ) async throws {
        let (still, frame) = (
            try Self.picture(20, 10, bands: bands, red: 9), try Self.picture(20, 10, bands: bands, red: 200)
        )
        let file = Self.animation(still, frame, at: Self.whole)
        #expect(try await RenderSamples.decoded(file) == RenderSamples.decoded(frame))
        let header = try ImageHeader.probe(file)
        #expect(header == ImageHeader(format: .png, encodedWidth: 20, encodedHeight: 10, hasAlpha: bands == 4))
    }

    @Test func `a default image that is the first frame is shown, and the header counts both`() async throws {
        let (still, frame) = (try Self.picture(20, 10, red: 9), try Self.picture(20, 10, red: 200))
        let file = Self.animation(still, frame, at: Self.whole, hidesDefault: false)
        #expect(try await RenderSamples.decoded(file) == RenderSamples.decoded(still))
        let header = try ImageHeader.probe(file)
        #expect(header.pages == 2 && header.shownPage == "the first picture of the animation")
    }

    @Test(arguments: [3, 4]) func `a first frame that covers a part of the canvas is transparent around it`(
        bands: Int
    ) async throws {
        let still = try Self.picture(20, 10, bands: bands, red: 9)
        let frame = try Self.picture(4, 3, bands: bands, red: 200)
        let file = Self.animation(still, frame, at: PixelRectangle(x: 7, y: 5, width: 4, height: 3))
        let picture = try await RenderSamples.decoded(file)
        #expect(try ImageHeader.probe(file).hasAlpha && picture.width == 20 && picture.height == 10)
        let expected = try await RenderSamples.decoded(frame)
        for y in 0..<10 {
            for x in 0..<20 {
                let found = Array(picture.pixels[(y * 20 + x) * 4..<(y * 20 + x) * 4 + 4])
                let isInside = (7..<11).contains(x) && (5..<8).contains(y)
                let at = ((y - 5) * 4 + x - 7) * 4
                #expect(found == (isInside ? Array(expected.pixels[at..<at + 4]) : [0, 0, 0, 0]))
            }
        }
    }

    @Test func `an animation whose chunks are out of order is a still picture`() async throws {
        let (still, frame) = (try Self.picture(20, 10, red: 9), try Self.picture(20, 10, red: 200))
        let usual = Self.animation(still, frame, at: Self.whole)
        let control = Self.control(0, Self.whole)
        // A frame control before acTL; the default image is all that is left.
        let early = Array(usual[..<33]) + control + usual[33...]
        #expect(try await RenderSamples.decoded(early) == RenderSamples.decoded(still))
        #expect(try ImageHeader.probe(early).pages == 1)
        // Two frame controls before the data of one frame: the second one counts.
        let at = try #require((0..<usual.count).first { usual[$0...].starts(with: "fcTL".utf8) }) - 4
        let twice =
            Array(usual[..<at]) + Self.control(0, PixelRectangle(x: 0, y: 0, width: 1, height: 1)) + usual[at...]
        #expect(try await RenderSamples.decoded(twice) == RenderSamples.decoded(frame))
        // A frame without its pixels: the default image is whole.
        let empty =
            Array(usual[..<at]) + control + PNGChunk.bytes("fdAT", [0, 0, 0, 1, 7])
            + PNGChunk.bytes("IEND", [])
        #expect(try await RenderSamples.decoded(empty) == RenderSamples.decoded(still))
    }

    @Test func `the default image is shown if there is no animation, or its first frame lies outside`() async throws {
        let (still, frame) = (try Self.picture(20, 10, red: 9), try Self.picture(20, 10, red: 200))
        let outside = PixelRectangle(x: 1, y: 0, width: 20, height: 10)
        let huge = PixelRectangle(x: 0, y: 0, width: 1 << 32 - 1, height: 1 << 32 - 1)
        for file in [
            Self.animation(still, frame, at: Self.whole, isAnimated: false), Self.animation(still, frame, at: outside),
            Self.animation(still, frame, at: huge),
        ] {
            #expect(try await RenderSamples.decoded(file) == RenderSamples.decoded(still))
        }
    }
}
