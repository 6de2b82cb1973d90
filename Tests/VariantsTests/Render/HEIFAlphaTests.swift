import TestSupport
import Testing

@testable import Variants

/// Transparency of AVIF and HEIF, a separate picture in the file.
@Suite struct HEIFAlphaTests {
    /// The file with properties of its colours or its alpha added or replaced, and perhaps marked as premultiplied; the old `meta`
    /// becomes `free`.
    static func rewritten(
        _ file: [UInt8], color: [(String, [UInt8])] = [], alpha: [(String, [UInt8])] = [],
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
            var container = [UInt8](try child("ipco", properties).all)
            var count = children(try child("ipco", properties)).count
            let primary = try #require(child("pitm", meta).uint16(4))
            let references = try? child("iref", meta)
            let auxiliary = references.flatMap { children($0.part(4)).first { $0.type == "auxl" }?.data.uint16(0) }
            var table = big(0, 4) + big(HEIFHeader.associations(properties).count, 4)
            for (item, indexes) in HEIFHeader.associations(properties) {
                let added = item == primary ? color : item == auxiliary ? alpha : []
                let all = children(try child("ipco", properties))
                let indexes = indexes.filter { index in !added.contains { $0.0 == all[(index & 0x7FFF) - 1].type } }
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
                case "iref": box("iref", [UInt8](child.data.all) + (isPremultiplied ? premultiplied : []))
                default: box(child.type, [UInt8](child.data.all))
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
            let colors = pixels.pixels[at] > 128 && pixels.pixels[at + 2] > 128
            // Colors are lost in transparent areas, unless they are not premultiplied.
            wrong += colors == isOpaque ? 0 : 1
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
                let changed = try Self.rewritten(file, color: list, alpha: alpha)
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
        let file = try Self.rewritten(Self.saved(Self.picture(), "av1"), color: [("irot", [1])])
        let pixels = try await RenderFixture.renderer.pixels(RenderSamples.job(file, ""))
        #expect(pixels.width == 32 && pixels.height == 48)
        // The top left corner goes to the bottom left.
        for (x, y, alpha) in [(4, 40, 255), (4, 8, 0), (28, 40, 0), (28, 8, 0)] {
            #expect(pixels.pixels[(y * 32 + x) * 4 + 3] == alpha, "\(x), \(y)")
        }
    }

    @Test func `a file that needs no help goes to the decoder as it is`() throws {
        let file = try Self.saved(Self.picture(), "av1")
        let turned = try Self.rewritten(file, color: [("irot", [1])])
        let both = try Self.rewritten(file, color: [("irot", [1])], alpha: [("irot", [1])])
        func aligned(_ file: [UInt8]) -> [UInt8]? {
            file.withUnsafeBytes { HEIFHeader.file(ByteReader($0)) }
        }
        #expect(aligned(file) == nil && aligned(both) == nil)
        let once = try #require(aligned(turned))
        #expect(aligned(once) == nil, "twice is once")
        // A file cut short stays one: nothing is appended to a box that ends later.
        #expect(aligned(Array(turned.dropLast(9))) == nil)
    }

    /// The picture with an alpha of half its size.
    static func withSmallAlpha() throws -> [UInt8] {
        let half = try RenderFixture.image(24, 16, bands: 4) { x, y in [0, 0, 0, x < 12 && y < 8 ? 255 : 0] }
        let small = try Self.saved(half, "av1")
        var file = try Self.saved(Self.picture(), "av1")
        // The small picture's alpha goes after the file, and its place and length into `iloc`.
        func place(_ file: [UInt8]) throws -> (offset: Int, length: Int) {
            try file.withUnsafeBytes { buffer in
                let meta = try #require(HEIFHeader.child("meta", of: ByteReader(buffer))).part(4)
                return try #require(HEIFHeader.location(of: 2, in: meta))
            }
        }
        let (old, new) = (try place(file), try place(small))
        let payload = Array(small[new.offset..<new.offset + new.length])
        // A base, one extent, which begins there, and its length.
        func entry(_ offset: Int, _ length: Int) -> [UInt8] {
            HandmadeImages.big(offset, 4) + [0, 1, 0, 0, 0, 0] + HandmadeImages.big(length, 4)
        }
        let wanted = entry(old.offset, old.length)
        let at = try #require((0..<file.count - 14).first { file[$0..<$0 + 14].elementsEqual(wanted) })
        file.replaceSubrange(at..<at + 14, with: entry(file.count + 8, payload.count))
        file += HandmadeImages.box("mdat", payload)
        // The decoder of the file.
        let properties = try small.withUnsafeBytes { buffer in
            let meta = try #require(HEIFHeader.child("meta", of: ByteReader(buffer))).part(4)
            let properties = try #require(HEIFHeader.child("iprp", of: meta))
            let all = Array(HEIFHeader.boxes(try #require(HEIFHeader.child("ipco", of: properties))))
            let own = HEIFHeader.associations(properties).filter { $0.item == 2 }.flatMap(\.indexes)
            return own.map { all[($0 & 0x7FFF) - 1] }.filter { ["ispe", "av1C"].contains($0.type) }
                .map { ($0.type, [UInt8]($0.data.all)) }
        }
        return try rewritten(file, alpha: properties)
    }

    @Test func `alpha smaller than the colours is enlarged, and turned with them`() async throws {
        let file = try Self.withSmallAlpha()
        for list in [[], [("irot", [1] as [UInt8])], [("imir", [1])]] {
            let changed = try Self.rewritten(file, color: list)
            let pixels = try await RenderFixture.renderer.pixels(RenderSamples.job(changed, ""))
            let (wrong, opaque) = Self.count(pixels)
            #expect(wrong * 15 < 48 * 32 && opaque * 5 > 48 * 32, "\(list): \(wrong), \(opaque)")
        }
        for list in [[Self.corner], [("ispe", [0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 16] as [UInt8])]] {
            let job = try RenderSamples.job(Self.rewritten(file, color: list), "")
            await #expect {
                try await RenderFixture.renderer.pixels(job)
            } throws: { error in
                (error as? RenderError)?.code == .undecodable
            }
        }
    }

    @Test(arguments: ["av1", "hevc"])
    func `colours multiplied by alpha are divided by it (ISO/IEC 23000-22 §7.3.5.2)`(compression: String) async throws {
        let color = [230.0, 120, 40]
        let image = try RenderFixture.image(64, 32, bands: 4) { x, _ in
            let alpha = Double(x * 4)
            return color.map { UInt8(($0 * alpha / 255).rounded()) } + [UInt8(alpha)]
        }
        let plain = try Self.saved(image, compression)
        for list in [[], [("irot", [2] as [UInt8])]] {
            let file = try Self.rewritten(plain, color: list, isPremultiplied: true)
            for recipe in ["", "thumbnail:32x16"] {
                let pixels = try await RenderFixture.renderer.pixels(RenderSamples.job(file, recipe))
                for column in [3, 5, 7] {
                    let x = (list.isEmpty ? column : 8 - column) * pixels.width / 8
                    let at = (pixels.height / 2 * pixels.width + x) * 4
                    let found = pixels.pixels[at..<at + 4].map(Int.init)
                    #expect(ColorTests.isNear(Array(found.prefix(3)), [230, 120, 40], 6), "\(recipe) \(x): \(found)")
                    #expect(abs(found[3] - column * 32) < 8, "\(recipe) \(x): \(found)")
                }
            }
        }
    }
}
