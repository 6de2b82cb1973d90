import TestSupport
import Testing

@testable import Variants

/// JPEG 2000 as a format of originals, only if the setting `decoders` names it, and only in workers.
@Suite struct JP2Tests {
    private typealias Make = HandmadeImages

    /// A codestream with these sizes and no pixels.
    static func codestream(
        _ width: Int, _ height: Int, tile: (Int, Int)? = nil, components: Int = 3, depth: UInt8 = 7, offset: Int = 0,
        levels: UInt8 = 5, block: UInt8 = 4, precincts: [UInt8] = []
    ) -> [UInt8] {
        let tile = tile ?? (width, height)
        let edges = [width, height, offset, offset, tile.0, tile.1, 0, 0].flatMap { Make.big($0, 4) }
        let size =
            [0, 0] + edges + Make.big(components, 2)
            + Array(repeating: [depth, 1, 1], count: components).flatMap { $0 }
        let coding = [precincts.isEmpty ? 0 : 1, 0, 0, 1, 1, levels, block, block, 0, 1] + precincts
        return [0xFF, 0x4F] + Make.segment(0x51, size) + Make.segment(0x64, [1, 2]) + Make.segment(0x52, coding)
            + [0xFF, 0x90, 0, 10]
    }

    static func file(_ boxes: [UInt8], _ codestream: [UInt8]) -> [UInt8] {
        Make.box("jP  ", [13, 10, 0x87, 10]) + Make.box("ftyp", Make.ascii("jp2 \0\0\0\0jp2 "))
            + Make.box("jp2h", boxes) + Make.box("jp2c", codestream)
    }

    private static func color(_ space: Int) -> [UInt8] { Make.box("colr", [1, 0, 0] + Make.big(space, 4)) }

    private static func saved(_ image: Image, tile: Int = 512, isLossless: Bool = true) throws -> [UInt8] {
        try image.saved(
            by: "jp2ksave_buffer",
            ["in": .image(image), "lossless": .bool(isLossless), "tile-width": .int(tile), "tile-height": .int(tile)])
    }

    private static func job(_ bytes: [UInt8], _ recipe: String, quality: RenderQuality = .fast) throws -> RenderJob {
        var job = try RenderSamples.job(bytes, recipe, quality: quality)
        job.limits.formats.insert(.jp2)
        return job
    }

    private static func withPool(_ body: (WorkerPool) async throws -> Void) async throws {
        let pool = WorkerPool(WorkerPoolTests.configuration())
        do { try await body(pool) } catch {
            await pool.shutdown()
            throw error
        }
        #expect(pool.statistics.crashed == 0)
        await pool.shutdown()
    }

    @Test func `a header gives the size, the levels, alpha and the color space`() throws {
        let plain = try ImageHeader.probe(Self.codestream(300, 200))
        #expect(plain.format == .jp2 && plain.width == 300 && plain.height == 200 && plain.levels == 5)
        #expect(!plain.hasAlpha && plain.pages == 1 && plain.orientation == 1)
        #expect(try ImageHeader.probe(Self.codestream(310, 210, offset: 10)).width == 300)
        for (space, components, hasAlpha, name) in [
            (16, 3, false, "RGB"), (16, 4, true, "RGB"), (17, 1, false, "grey"), (17, 2, true, "grey"),
            (18, 3, false, "RGB"), (12, 4, false, "CMYK"), (12, 5, true, "CMYK"),
        ] {
            let bytes = Self.file(Self.color(space), Self.codestream(30, 20, components: components, depth: 11))
            let header = try ImageHeader.probe(bytes)
            #expect(header.hasAlpha == hasAlpha, "\(space)")
            let details = ImageDetails.read(bytes, header)
            #expect(details.colorSpace == name && details.bitDepth == 12)
        }
        let profile = Array(repeating: UInt8(0), count: 16) + Make.ascii("GRAY") + [UInt8](repeating: 0, count: 100)
        let gray = Self.file(Make.box("colr", [2, 0, 0] + profile), Self.codestream(30, 20, components: 2))
        let header = try ImageHeader.probe(gray)
        #expect(header.hasAlpha && header.profileBytes == profile.count)
    }

    @Test(
        arguments: [
            ("truncated", codestream(30, 20).dropLast(60), .undecodable),
            ("zero wide", codestream(0, 20), .undecodable),
            ("offset beyond the edge", codestream(30, 20, offset: 40), .undecodable),
            ("without tiles", codestream(30, 20, tile: (0, 0)), .undecodable),
            ("tiny tiles", codestream(1 << 23, 1 << 23, tile: (1, 1)), .overLimit),
            ("many tiles", codestream(20_000, 10_000, tile: (100, 100)), .overLimit),
            ("without a codestream", file(color(16), []), .undecodable),
            (
                "many boxes",
                file(Array(repeating: Make.box("free", []), count: 20_000).flatMap { $0 }, codestream(3, 2)), .overLimit
            ),
            ("a long edge", codestream(1 << 24, 10), .overLimit),
        ] as [(String, [UInt8], RenderError.Code)])
    func `a damaged header, or one with too many parts, is refused`(
        name: String, bytes: [UInt8], code: RenderError.Code
    ) {
        let error = #expect(throws: RenderError.self) { try ImageHeader.probe(bytes) }
        #expect(error?.code == code && error?.message.contains("JPEG 2000") == true, "\(name): \(error as Any)")
    }

    @Test(arguments: [
        ("a palette", file(color(16) + Make.box("pclr", [0, 2, 3]), codestream(30, 20, components: 1))),
        ("5 components", codestream(30, 20, components: 5)), ("1-bit", codestream(30, 20, depth: 0)),
        ("20-bit", codestream(30, 20, depth: 19)), ("2 components", file(color(16), codestream(30, 20, components: 2))),
    ])
    func `a picture that libvips would misread is refused`(name: String, bytes: [UInt8]) async throws {
        try await Self.withPool { pool in
            let error = await DecodedFormatsTests.refusal(pool, try Self.job(bytes, "thumbnail:10"))
            #expect(error?.code == .undecodable && error?.message.contains(name) == true, "\(error as Any)")
            #expect(error?.message.contains("convert it to") == true)
        }
    }

    /// The layout decides what OpenJPEG keeps, whatever the file declares.
    @Test func `small code-blocks, small precincts and large tiles take memory`() throws {
        func needed(_ bytes: [UInt8]) throws -> Int { try RenderMemory(Self.job(bytes, "thumbnail:100")).decode >> 20 }
        let edge = 8000
        #expect(try needed(Self.codestream(edge, edge)) < 120)
        #expect(try needed(Self.codestream(edge, edge, tile: (512, 512))) < 120)
        #expect(try needed(Self.codestream(edge, edge, tile: (4000, 4000))) > 400)
        #expect(try needed(Self.codestream(edge, edge, block: 0)) > 4000)
        #expect(try needed(Self.codestream(edge, edge, levels: 1, precincts: [0x33, 0x44])) > 1000)
        let error = #expect(throws: RenderError.self) {
            try Self.job(Self.codestream(edge, edge, block: 0), "thumbnail:100").checkLimits(memory: 1 << 30)
        }
        #expect(error?.code == .overLimit && error?.message.contains("limits.workerMemory") == true)
    }

    @Test func `JPEG 2000 is decoded in workers if it is listed`() async throws {
        let bytes = try Self.saved(RenderFixture.gradientImage(60, 40))
        try await Self.withPool { pool in
            var job = try Self.job(bytes, "thumbnail:20,png")
            #expect(
                await DecodedFormatsTests.refusal(InProcessRenderer(maxConcurrentRenders: 1), job)?.code
                    == .unsupportedFormat)
            #expect(try await pool.render(job).width == 20)
            job.limits.formats = RenderLimits().formats
            let error = await DecodedFormatsTests.refusal(pool, job)
            #expect(error?.code == .unsupportedFormat && error?.message.contains("`decoders`") == true)
        }
    }

    @Test(arguments: [512, 64, 4096]) func `pixels are the same as in a PNG, bare and in a container`(tile: Int)
        async throws
    {
        let color = try RenderFixture.gradientImage(200, 150)
        let alpha = try RenderFixture.image(90, 70, bands: 4) { [UInt8($0), UInt8($1), 9, UInt8($0 + $1 + 1)] }
        let gray = try RenderFixture.image(50, 40, bands: 1) { [UInt8($0 * $1 % 256)] }
        try await Self.withPool { pool in
            for image in [color, alpha, gray] {
                let bytes = try Self.saved(image, tile: tile)
                #expect(try ImageHeader.probe(bytes).hasAlpha == image.hasAlpha)
                let expected = try await RenderSamples.decoded(RenderFixture.png(image))
                let start = try #require(bytes.withUnsafeBytes { ByteReader($0).firstOffset(of: "jp2c") }) + 4
                for file in [bytes, Array(bytes[start...])] {
                    let job = try Self.job(file, "png")
                    let shown = try await RenderSamples.decoded(pool.render(job).bytes)
                    #expect(shown == expected)
                }
            }
        }
    }

    @Test func `16 bits and premultiplied alpha are converted`() async throws {
        let image = try RenderFixture.image(40, 30, bands: 4) { x, y in [UInt8(x), UInt8(y), 40, 80] }
        let wide = try VipsCall("colourspace", ["in": .image(RenderFixture.gradientImage(60, 40)), "space": "rgb16"])
            .image()
        try await Self.withPool { pool in
            let shown = try await RenderSamples.decoded(pool.render(Self.job(Self.saved(wide), "png")).bytes)
            let expected = try await RenderSamples.decoded(RenderFixture.png(RenderFixture.gradientImage(60, 40)))
            #expect(zip(shown.pixels, expected.pixels).allSatisfy { abs(Int($0) - Int($1)) <= 1 })
            // Declare the last channel as premultiplied alpha.
            let bytes = try Self.saved(image)
            let at = try #require(bytes.withUnsafeBytes { ByteReader($0).firstOffset(of: "jp2h") })
            let length = Int(bytes[at - 2]) << 8 | Int(bytes[at - 1])
            // The number, the type and the association of each channel.
            let channels = [[0, 0, 1], [1, 0, 2], [2, 0, 3], [3, 2, 0]].flatMap { $0 }.flatMap { Make.big($0, 2) }
            let box = Make.box("cdef", [0, 4] + channels)
            var changed = bytes
            let old = try #require(bytes.withUnsafeBytes { ByteReader($0).firstOffset(of: "cdef") })
            let oldLength = Int(bytes[old - 1])
            changed.replaceSubrange(old - 4..<old - 4 + oldLength, with: box)
            changed.replaceSubrange(at - 4..<at, with: Make.big(length + box.count - oldLength, 4))
            let divided = try await RenderSamples.decoded(pool.render(Self.job(changed, "png")).bytes)
            #expect(Array(divided.pixels[(40 * 20 + 20) * 4..<(40 * 20 + 21) * 4]) == [64, 64, 128, 80])
        }
    }

    @Test(arguments: [RenderQuality.fast, .balanced, .best])
    func `a small picture is decoded from a level that is large enough`(quality: RenderQuality) async throws {
        let image = try RenderFixture.gradientImage(1200, 900)
        let job = try Self.job(Self.saved(image), "thumbnail:60x45,png", quality: quality)
        #expect(RenderPlan(job).shrink == [.fast: 8, .balanced: 4, .best: 1][quality])
        let png = try await RenderFixture.renderer.render(
            RenderSamples.job(RenderFixture.png(image), "thumbnail:60x45,png", quality: quality))
        try await Self.withPool { pool in
            let (shown, expected) = (
                try await RenderSamples.decoded(pool.render(job).bytes), try await RenderSamples.decoded(png.bytes)
            )
            let differences = zip(shown.pixels, expected.pixels).map { abs(Int($0) - Int($1)) }
            #expect(Double(differences.reduce(0, +)) / Double(differences.count) < 3)
            // Every size that a level can have is accepted.
            for (width, height) in [(1201, 901), (1199, 33), (17, 1203), (1, 1200)] {
                let odd = try Self.job(
                    Self.saved(RenderFixture.gradientImage(width, height)), "thumbnail:9", quality: quality)
                #expect(try await pool.render(odd).width <= 9)
            }
        }
    }

    @Test func `a JPEG 2000 that is cut short or damaged ends no worker`() async throws {
        let bytes = try Self.saved(RenderFixture.gradientImage(400, 300), tile: 128, isLossless: false)
        try await Self.withPool { pool in
            for count in [200, bytes.count / 2] {
                let error = await DecodedFormatsTests.refusal(pool, try Self.job(Array(bytes[..<count]), "png"))
                #expect(error?.code == .undecodable, "\(count): \(error as Any)")
            }
            var random = SystemRandomNumberGenerator()
            for _ in 0..<40 {
                var damaged = bytes
                for _ in 0..<5 {
                    damaged[Int.random(in: 90..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
                }
                guard let job = try? Self.job(damaged, "thumbnail:50,png") else { continue }
                _ = await DecodedFormatsTests.refusal(pool, job)
            }
        }
    }
}
