import TestSupport
import Testing

@testable import Variants

/// Transparency of AVIF and HEIF, a picture of its own in the file.
@Suite struct HEIFAlphaTests {
    /// The file with properties added to its colours or its alpha, and perhaps marked as premultiplied; the old `meta`
    /// becomes `free`.
    static func rewritten(
        _ file: [UInt8], colour: [(String, [UInt8])] = [], alpha: [(String, [UInt8])] = [],
        isPremultiplied: Bool = false
    ) throws -> [UInt8] {
        let big = HandmadeImages.big
        let box = HandmadeImages.box
        return try file.withUnsafeBytes { buffer in
            func children(_ reader: ByteReader) -> [HEIFHeader.Box] { Array(HEIFHeader.boxes(reader)) }
            func child(_ type: String, _ parent: ByteReader) throws -> ByteReader {
                try #require(children(parent).first { $0.type == type }).data
            }
            let reader = ByteReader(buffer)
            let top = try #require(children(reader).first { $0.type == "meta" })
            let meta = top.data.part(4)
            let properties = try child("iprp", meta)
            var container = try child("ipco", properties).array
            var count = children(try child("ipco", properties)).count
            let primary = try #require(child("pitm", meta).uint16(4))
            let references = try? child("iref", meta)
            let auxiliary = references.flatMap { children($0.part(4)).first { $0.type == "auxl" }?.data.uint16(0) }
            var table = big(0, 4) + big(HEIFHeader.associations(properties).count, 4)
            for (item, indexes) in HEIFHeader.associations(properties) {
                let added = item == primary ? colour : item == auxiliary ? alpha : []
                table += big(item, 2) + [UInt8(indexes.count + added.count)]
                table += indexes.map { UInt8($0 >> 8 & 0x80 | $0 & 0x7F) }
                for (type, data) in added {
                    container += box(type, data)
                    count += 1
                    table.append(UInt8(0x80 | count))
                }
            }
            let premultiplied = box("prem", big(primary, 2) + big(1, 2) + big(auxiliary ?? 0, 2))
            let contents = children(meta).flatMap { child -> [UInt8] in
                switch child.type {
                case "iprp": box("iprp", box("ipco", container) + box("ipma", table))
                case "iref": box("iref", child.data.array + (isPremultiplied ? premultiplied : []))
                default: box(child.type, child.data.array)
                }
            }
            var result = file
            result.replaceSubrange(top.start + 4..<top.start + 8, with: "free".utf8)
            return result + box("meta", [0, 0, 0, 0] + contents)
        }
    }

    /// 48 × 32 pixels: the left is red, the top has blue; where both are, it is opaque, elsewhere transparent.
    static func picture() throws -> Image {
        try RenderFixture.image(48, 32, bands: 4) { x, y in
            [x < 24 ? 220 : 40, 90, y < 16 ? 220 : 40, x < 24 && y < 16 ? 255 : 0]
        }
    }

    static func saved(_ image: Image, _ compression: String) throws -> [UInt8] {
        try image.saved(
            by: "heifsave_buffer",
            [
                "in": .image(image), "compression": .string(compression), "Q": 100, "subsample-mode": "off",
                "bitdepth": 8, "strip": true,
            ])
    }

    /// How many pixels are transparent though their colours say opaque, or the other way round, and how many opaque.
    static func count(_ pixels: PixelBuffer) -> (wrong: Int, opaque: Int) {
        var (wrong, opaque) = (0, 0)
        for at in stride(from: 0, to: pixels.pixels.count, by: 4) {
            let isOpaque = pixels.pixels[at + 3] > 128
            opaque += isOpaque ? 1 : 0
            let colours = pixels.pixels[at] > 128 && pixels.pixels[at + 2] > 128
            // Colours are lost where it is transparent, unless they are not premultiplied.
            wrong += colours == isOpaque ? 0 : 1
        }
        return (wrong, opaque)
    }

    /// A quarter from `clap`: 24 × 16 around the middle, moved by −12, −8.
    static let corner = ("clap", [24, 1, 16, 1, -12, 1, -8, 1].flatMap { HandmadeImages.big($0, 4) })

    @Test(arguments: ["av1", "hevc"])
    func `alpha is turned, mirrored and cropped with the colours, wherever the file says so`(
        compression: String
    ) async throws {
        let file = try Self.saved(Self.picture(), compression)
        let transformations: [[(String, [UInt8])]] = [
            [("irot", [1])], [("irot", [2])], [("irot", [3])], [("imir", [0])], [("imir", [1])],
            [("irot", [1]), ("imir", [0])], [("imir", [1]), ("irot", [3])], [Self.corner],
            [Self.corner, ("irot", [1])],
        ]
        for list in transformations {
            for alpha in [[], list, [("irot", [2] as [UInt8])]] {
                let changed = try Self.rewritten(file, colour: list, alpha: alpha)
                for recipe in ["", "thumbnail:24x24"] {
                    let pixels = try await RenderFixture.renderer.pixels(RenderSamples.job(changed, recipe))
                    let (wrong, opaque) = Self.count(pixels)
                    let all = pixels.width * pixels.height
                    // Shrinking leaves colours beside the edges that are transparent.
                    #expect(
                        wrong * (recipe.isEmpty ? 40 : 6) < all,
                        "\(list), alpha \(alpha), \(recipe): \(wrong) of \(all) pixels")
                    #expect(opaque > all / 5, "\(list): \(opaque) of \(all) pixels are opaque")
                }
            }
        }
    }

    @Test func `a quarter turn is counter-clockwise (ISO/IEC 23008-12 §6.5.10), alpha included`() async throws {
        let file = try Self.rewritten(Self.saved(Self.picture(), "av1"), colour: [("irot", [1])])
        let pixels = try await RenderFixture.renderer.pixels(RenderSamples.job(file, ""))
        #expect(pixels.width == 32 && pixels.height == 48)
        // The top left corner goes to the bottom left.
        for (x, y, alpha) in [(4, 40, 255), (4, 8, 0), (28, 40, 0), (28, 8, 0)] {
            #expect(pixels.pixels[(y * 32 + x) * 4 + 3] == alpha, "\(x), \(y)")
        }
    }

    @Test func `a file that needs no help goes to the decoder as it is`() throws {
        let file = try Self.saved(Self.picture(), "av1")
        let turned = try Self.rewritten(file, colour: [("irot", [1])])
        let both = try Self.rewritten(file, colour: [("irot", [1])], alpha: [("irot", [1])])
        func aligned(_ file: [UInt8]) -> [UInt8]? {
            file.withUnsafeBytes { HEIFHeader.withAlignedAlpha(ByteReader($0)) }
        }
        #expect(aligned(file) == nil && aligned(both) == nil)
        let once = try #require(aligned(turned))
        #expect(aligned(once) == nil, "twice is once")
        // A file cut short stays one: nothing is appended to a box that ends later.
        #expect(aligned(Array(turned.dropLast(9))) == nil)
    }

    @Test(arguments: ["av1", "hevc"])
    func `colours multiplied by alpha are divided by it (ISO/IEC 23000-22 §7.3.5.2)`(compression: String) async throws {
        let colour = [230.0, 120, 40]
        let image = try RenderFixture.image(64, 32, bands: 4) { x, _ in
            let alpha = Double(x * 4)
            return colour.map { UInt8(($0 * alpha / 255).rounded()) } + [UInt8(alpha)]
        }
        let plain = try Self.saved(image, compression)
        for list in [[], [("irot", [2] as [UInt8])]] {
            let file = try Self.rewritten(plain, colour: list, isPremultiplied: true)
            for recipe in ["", "thumbnail:32x16"] {
                let pixels = try await RenderFixture.renderer.pixels(RenderSamples.job(file, recipe))
                for column in [3, 5, 7] {
                    let x = (list.isEmpty ? column : 8 - column) * pixels.width / 8
                    let at = (pixels.height / 2 * pixels.width + x) * 4
                    let found = pixels.pixels[at..<at + 4].map(Int.init)
                    #expect(ColourTests.isNear(Array(found.prefix(3)), [230, 120, 40], 6), "\(recipe) \(x): \(found)")
                    #expect(abs(found[3] - column * 32) < 8, "\(recipe) \(x): \(found)")
                }
            }
        }
    }
}
