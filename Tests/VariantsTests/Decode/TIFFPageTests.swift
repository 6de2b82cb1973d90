import TestSupport
import Testing

@testable import Variants

/// Pages of a TIFF, which `page:N` selects.
@Suite struct TIFFPageTests {
    /// A document with pages of one color. Each page is one tile wide, or several.
    static func document(_ colors: [UInt8], edge: Int = 40, isPyramid: Bool = false) throws -> [UInt8] {
        let pages = try colors.map { color in try RenderFixture.image(edge, edge) { _, _ in [color, 0, 9] } }
        let joined = try VipsCall("arrayjoin", ["in": .images(pages), "across": 1]).image()
        return try joined.saved(
            by: "tiffsave_buffer",
            [
                "in": .image(joined), "page-height": .int(edge), "tile": .bool(isPyramid), "pyramid": .bool(isPyramid),
                "tile-width": 64, "tile-height": 64, "subifd": .bool(isPyramid),
            ])
    }

    @Test(arguments: [false, true]) func `a page has its own size, levels and pixels`(isPyramid: Bool) async throws {
        let edge = isPyramid ? 256 : 40
        let bytes = try Self.document([50, 100, 150], edge: edge, isPyramid: isPyramid)
        let header = try ImageHeader.probe(bytes)
        #expect(header.pages == 3 && header.furtherPages.count == 2 && header.page(4) == nil && header.page(0) == nil)
        #expect(header.page(2)?.width == edge && header.page(2)?.levels == (isPyramid ? 2 : 0))
        #expect(header.page(3)?.readsWindows == isPyramid)
        for (page, color) in [(1, 50), (2, 100), (3, 150)] as [(Int, UInt8)] {
            for steps in ["", ",thumbnail:20", ",crop:10x10+3+4"] {
                let job = try RenderSamples.job(bytes, "page:\(page)" + steps)
                #expect(
                    try await RenderFixture.renderer.pixels(job).pixels.prefix(4) == [color, 0, 9, 255],
                    "\(page)\(steps)")
            }
        }
        let missing = try RenderSamples.job(bytes, "page:4")
        let error = await DecodedFormatsTests.refusal(RenderFixture.renderer, missing)
        #expect(error?.code == .notApplicable && error?.message == "the TIFF has no page 4")
    }

    @Test func `pages can have different sizes, and workers decode them`() async throws {
        let bytes = HandmadeImages.tiff(width: 300, height: 200, pages: 3)
        #expect(try ImageHeader.probe(bytes).page(3)?.height == 200)
        let pool = WorkerPool(WorkerPoolTests.configuration())
        let job = try RenderSamples.job(Self.document([7, 8]), "page:2,png")
        #expect(try await RenderSamples.decoded(pool.render(job).bytes).pixels[0] == 8)
        await pool.shutdown()
    }

    @Test func `other formats have one page`() async throws {
        let job = try RenderSamples.job("night-tiny.jpg", "page:2")
        let error = await DecodedFormatsTests.refusal(RenderFixture.renderer, job)
        #expect(error?.code == .notApplicable && error?.message.contains("pages of JPEG originals") == true)
    }

    /// A directory with many entries takes time for each tag.
    @Test func `at most 500 pages are read, and none after a directory with many entries`() throws {
        #expect(try ImageHeader.probe(HandmadeImages.tiff(width: 3, height: 2, pages: 900)).furtherPages.count == 499)
        var bytes = HandmadeImages.tiff(width: 3, height: 2, pages: 9)
        let third = try #require(bytes.withUnsafeBytes { TIFFHeader(ByteReader($0)) }).chain[2]
        bytes[third + 1] = 2
        bytes += [UInt8](repeating: 0, count: 20_000)
        #expect(try ImageHeader.probe(bytes).furtherPages.count == 1)
    }

    /// Returns a little-endian TIFF whose directories have these entries of one number each.
    private static func file(_ directories: [[(tag: Int, value: Int)]]) -> [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        var bytes: [UInt8] = Array("II".utf8) + number(42, 2) + number(16, 4) + number(0, 8)
        for (index, entries) in directories.enumerated() {
            let end = bytes.count + 2 + 12 * entries.count + 4
            bytes += number(entries.count, 2)
            for entry in entries {
                bytes += number(entry.tag, 2) + number(4, 2) + number(1, 4) + number(entry.value, 4)
            }
            bytes += number(index + 1 < directories.count ? end : 0, 4)
        }
        return bytes
    }

    private static func entries(_ width: Int, _ height: Int, isReduced: Bool) -> [(tag: Int, value: Int)] {
        [
            (254, isReduced ? 1 : 0), (256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1),
            (278, 1), (279, 1),
        ]
    }

    @Test func `a version of one pixel is the last one`() throws {
        let small = Self.file([Self.entries(2, 1, isReduced: false), Self.entries(1, 1, isReduced: true)])
        #expect(try ImageHeader.probe(small).levels == 1)
        let repeated = Self.file(
            [Self.entries(9, 5, isReduced: false)] + (0..<9).map { _ in Self.entries(1, 1, isReduced: true) })
        #expect(try ImageHeader.probe(repeated).levels == 0)
        let chain = [(9, 5), (5, 3), (3, 2), (2, 1), (1, 1), (1, 1)].enumerated()
        let whole = Self.file(chain.map { Self.entries($0.element.0, $0.element.1, isReduced: $0.offset > 0) })
        #expect(try ImageHeader.probe(whole).levels == 4)
    }

    @Test func `versions with many entries are not read`() throws {
        var long = Self.entries(4, 2, isReduced: true)
        long += (0..<300).map { (tag: 40_000 + $0, value: 0) }
        #expect(try ImageHeader.probe(Self.file([Self.entries(8, 4, isReduced: false), long])).levels == 0)
        #expect(
            try ImageHeader.probe(Self.file([Self.entries(8, 4, isReduced: false), Array(long.prefix(200))])).levels
                == 1)
    }

    @Test func `renders of different pages do not share a decode`() throws {
        let bytes = try Self.document([10, 200], edge: 400)
        for (recipe, isShared) in [("thumbnail:40", true), ("page:2,thumbnail:40", false)] {
            var job = try RenderSamples.job(bytes, recipe)
            job.digest = "a"
            #expect((job.shareable != nil) == isShared, "\(recipe)")
        }
    }
}
