import Testing

@testable import Variants

/// The orientation of every container gives the same upright picture.
@Suite struct OrientationTests {
    static let width = 24
    static let height = 16

    /// The upright picture, stored as an EXIF orientation of `orientation` has it (Exif 2.32, 4.6.4 A). Four flat quarters
    /// of different brightness, so that lossy files keep them apart.
    static func stored(_ orientation: Int) throws -> Image {
        let isTurned = orientation >= 5
        return try RenderFixture.image(isTurned ? height : width, isTurned ? width : height) { x, y in
            let (a, b) = upright(x, y, orientation, width, height)
            return quarter(a, b)
        }
    }

    /// Where the upright picture of `width` × `height` has the pixel stored at `x`, `y` (Exif 2.32, 4.6.4 A).
    static func upright(_ x: Int, _ y: Int, _ orientation: Int, _ width: Int, _ height: Int) -> (Int, Int) {
        switch orientation {
        case 2: (width - 1 - x, y)
        case 3: (width - 1 - x, height - 1 - y)
        case 4: (x, height - 1 - y)
        case 5: (y, x)
        case 6: (width - 1 - y, x)
        case 7: (width - 1 - y, height - 1 - x)
        case 8: (y, height - 1 - x)
        default: (x, y)
        }
    }

    static func quarter(_ x: Int, _ y: Int) -> [UInt8] {
        let value: UInt8 = x < width / 2 ? (y < height / 2 ? 20 : 90) : (y < height / 2 ? 160 : 240)
        return [value, value, value]
    }

    /// Whether the quarters are where they belong.
    static func isUpright(_ picture: PixelBuffer) -> Bool {
        guard picture.width == width, picture.height == height else { return false }
        return [(4, 4), (18, 4), (4, 12), (18, 12)].allSatisfy { x, y in
            abs(Int(picture.pixels[(y * width + x) * 4]) - Int(quarter(x, y)[0])) < 12
        }
    }

    static func file(_ container: String, _ orientation: Int) throws -> [UInt8] {
        let image = try stored(orientation)
        let kept = KeptBlobs(exif: HandmadeImages.exif(orientation))
        let plain = try ColorTests.saved(image, container)
        switch container {
        case "jpeg": return kept.inserted(intoJPEG: plain)
        case "png": return kept.inserted(intoPNG: plain)
        case "webp":
            return kept.wrapped(
                webP: plain,
                EncodablePixels(
                    storage: PixelStorage(byteCount: 0), width: image.width, height: image.height, bands: 3))
        default:
            let copy = try VipsCall("copy", ["in": .image(image)]).image()
            copy.set("orientation", orientation)
            return try copy.saved(by: "tiffsave_buffer", ["in": .image(copy)])
        }
    }

    @Test(arguments: ["jpeg", "png", "webp", "tiff"], 1...8)
    func `the orientation of every container is followed`(container: String, orientation: Int) async throws {
        let file = try Self.file(container, orientation)
        #expect(try ImageHeader.probe(file).orientation == orientation)
        #expect(Self.isUpright(try await RenderFixture.renderer.pixels(RenderSamples.job(file, ""))))
        let off = try await RenderFixture.renderer.pixels(RenderSamples.job(file, "orient:off"))
        #expect((off.width == Self.height) == (orientation >= 5))

        // Outputs are upright, and so is the EXIF that they keep.
        for output in ["jpeg", "png", "webp", "avif"] {
            let variant = try await RenderFixture.renderer.render(RenderSamples.job(file, output + ":keep=exif"))
            #expect(variant.width == Self.width && variant.height == Self.height)
            #expect(try ImageHeader.probe(variant.bytes).orientation == 1)
            #expect(Self.isUpright(try await RenderSamples.decoded(variant.bytes)))
        }
    }

    /// An AVIF with a transforming property: the box of a profile is overwritten by it and a `free` box.
    static func avif(_ image: Image, _ type: String, _ value: UInt8) throws -> [UInt8] {
        let profile = [UInt8](repeating: 0xAB, count: 16)
        var file = try ColorTests.saved(image, "avif", profile)
        let old = HandmadeImages.box("colr", HandmadeImages.ascii("prof") + profile)
        let new =
            HandmadeImages.box(type, [value])
            + HandmadeImages.box("free", [UInt8](repeating: 0, count: old.count - 17))
        let at = try #require(file.indices.first { file[$0...].starts(with: old) })
        file.replaceSubrange(at..<(at + old.count), with: new)
        return file
    }

    @Test(arguments: [
        ("irot", UInt8(0), 1), ("irot", 1, 8), ("irot", 2, 3), ("irot", 3, 6), ("imir", 0, 4), ("imir", 1, 2),
    ])
    func `turns and mirrors of AVIF are followed`(type: String, value: UInt8, orientation: Int) async throws {
        let file = try Self.avif(Self.stored(orientation), type, value)
        let header = try ImageHeader.probe(file)
        #expect(header.width == Self.width && header.height == Self.height && header.orientation == 1)
        #expect(Self.isUpright(try await RenderFixture.renderer.pixels(RenderSamples.job(file, ""))))
    }
}
