import Testing

@testable import Variants

/// Whole pictures in a damaged wrapper. Chromium shows all mended ones.
@Suite struct RepairedPNGTests {
    /// A PNG taken apart: everything before its pixels, and the zlib stream.
    private struct Parts {
        var head: [UInt8]
        var zlib: [UInt8]

        init(_ png: [UInt8]) {
            head = Array(png[..<33])
            zlib = []
            png.withUnsafeBytes { bytes in
                PNGDecoder.forEachChunk(ByteReader(bytes)) { if $0 == "IDAT" { zlib += [UInt8]($1.all) } }
            }
        }

        static let end = PNGChunk.bytes("IEND", [])

        func file(_ data: [UInt8]) -> [UInt8] { head + PNGChunk.bytes("IDAT", data) + Self.end }
    }

    /// Every fourth row repeats, so that back references reach further than a window of 256 bytes.
    private static func png(_ recipe: String = "png") async throws -> [UInt8] {
        var state: UInt32 = 7
        let noise = (0..<4 * 200 * 3).map { _ -> UInt8 in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(state >> 24)
        }
        let image = try RenderFixture.image(200, 60) { x, y in
            let at = (y % 4 * 200 + x) * 3
            return Array(noise[at..<at + 3])
        }
        return try await RenderFixture.renderer.render(RenderSamples.job(RenderFixture.png(image), recipe)).bytes
    }

    private static func damaged(_ png: [UInt8]) -> [(name: String, bytes: [UInt8])] {
        let parts = Parts(png)
        let zlib = parts.zlib
        let (first, second) = (Array(zlib[..<(zlib.count / 2)]), Array(zlib[(zlib.count / 2)...]))
        func wrongCRC(_ data: [UInt8]) -> [UInt8] { PNGChunk.bytes("IDAT", data).dropLast() + [7] }
        return [
            ("no Adler-32", parts.file(zlib.dropLast(4))),
            ("half an Adler-32", parts.file(zlib.dropLast(2))),
            ("a wrong Adler-32", parts.file(zlib.dropLast(4) + [1, 2, 3, 4])),
            ("a wrong CRC", parts.head + wrongCRC(zlib) + Parts.end),
            ("a wrong CRC in the middle", parts.head + wrongCRC(first) + PNGChunk.bytes("IDAT", second) + Parts.end),
            ("a small window", parts.file([0x08, 0x1D] + zlib.dropFirst(2))),
            ("no IEND", parts.file(zlib).dropLast(12)),
            ("no CRC at the end", parts.file(zlib).dropLast(16)),
            ("neither CRC nor Adler-32 at the end", parts.file(zlib).dropLast(20)),
            (
                "text with a wrong CRC",
                parts.head + PNGChunk.bytes("tEXt", [65, 0, 66]).dropLast() + [0]
                    + parts.file(zlib).dropFirst(33)
            ),
            (
                "a transparent colour before the palette",
                parts.head + PNGChunk.bytes("tRNS", [0, 9, 0, 9, 0, 9]) + PNGChunk.bytes("PLTE", [1, 2, 3])
                    + parts.file(zlib).dropFirst(33)
            ),
            (
                "two palettes",
                parts.head + PNGChunk.bytes("PLTE", [1, 2, 3]) + PNGChunk.bytes("PLTE", [4, 5, 6])
                    + parts.file(zlib).dropFirst(33)
            ),
        ]
    }

    @Test(arguments: ["png", "png:progressive"]) func `they are decoded`(output: String) async throws {
        let whole = try await Self.png(output)
        let expected = try await RenderSamples.decoded(whole)
        for (name, bytes) in Self.damaged(whole) {
            do {
                #expect(try await RenderSamples.decoded(bytes) == expected, "\(name)")
                let small = try await RenderFixture.renderer.render(RenderSamples.job(bytes, "thumbnail:30,webp"))
                #expect(small.width == 30, "\(name)")
            } catch {
                Issue.record("\(name): \(error)")
            }
        }
    }

    @Test func `a palette after the pixels is a palette`() async throws {
        let image = try RenderFixture.image(20, 10, bands: 4) { x, y in [UInt8(x % 3 * 90), 9, 9, y < 5 ? 100 : 255] }
        let whole = try image.saved(by: "pngsave_buffer", ["in": .image(image), "palette": true, "strip": true])
        #expect(whole[25] == 3)
        var (first, last): ([UInt8], [UInt8]) = (Array(whole[..<33]), [])
        whole.withUnsafeBytes { bytes in
            PNGDecoder.forEachChunk(ByteReader(bytes)) { type, data in
                let chunk = PNGChunk.bytes(type, [UInt8](data.all))
                if type == "PLTE" || type == "tRNS" { last = chunk + last } else { first += chunk }
            }
        }
        let expected = try await RenderSamples.decoded(whole)
        #expect(try await RenderSamples.decoded(first + last + Parts.end) == expected)
    }

    @Test(arguments: ["png", "png:progressive"])
    func `a picture that lacks pixels, or has others, is refused`(output: String) async throws {
        let whole = try await Self.png(output)
        let parts = Parts(whole)
        let zlib = parts.zlib
        var flipped = zlib
        flipped[zlib.count / 3] ^= 0x55
        let refused = [
            parts.file(zlib.dropLast(40)), parts.file(Array(zlib[..<(zlib.count / 2)])),
            Array(whole.dropLast(100)), Array(whole[..<(whole.count / 2)]),
            parts.head + PNGChunk.bytes("IDAT", flipped).dropLast(4) + [1, 2, 3, 4] + Parts.end,
            parts.head + Parts.end,
        ]
        for (index, bytes) in refused.enumerated() {
            let error = await #expect(throws: RenderError.self, "\(index)") { try await RenderSamples.decoded(bytes) }
            #expect(error?.code == .undecodable)
            bytes.withUnsafeBytes { #expect(RepairedPNG.bytes($0) == nil, "\(index)") }
        }
    }

    @Test(arguments: ["png", "png:progressive"])
    func `data that ends well but makes too few rows is refused`(output: String) async throws {
        let whole = try await Self.png(output)
        let parts = Parts(whole)
        let header = Bytes.bigEndian(200) + Bytes.bigEndian(61) + whole[24..<29]
        let file = whole[..<8] + PNGChunk.bytes("IHDR", header) + PNGChunk.bytes("IDAT", parts.zlib.dropLast(4))
        let error = await #expect(throws: RenderError.self) { try await RenderSamples.decoded(file + Parts.end) }
        #expect(error?.code == .undecodable)
    }

    @Test func `no bytes are too strange`() async throws {
        let whole = try await Self.png()
        for at in stride(from: 0, to: whole.count, by: 23) {
            whole[..<at].withUnsafeBytes { _ = RepairedPNG.bytes($0) }
            var bytes = whole
            bytes[at] ^= 1 << UInt8(at % 8)
            bytes.withUnsafeBytes { _ = RepairedPNG.bytes($0) }
        }
        for at in 0..<60 {
            for value: UInt8 in [0, 0x7F, 0xFF] {
                var bytes = whole
                bytes[at] = value
                bytes.withUnsafeBytes { _ = RepairedPNG.bytes($0) }
            }
        }
    }
}
