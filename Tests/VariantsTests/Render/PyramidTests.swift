import TestSupport
import Testing

@testable import Variants

/// TIFF files with tiles and smaller versions: limits apply to the part that is decoded.
@Suite struct PyramidTests {
    /// A picture of `width` × `height` squares of `square` pixels, each in its own color.
    private static func squares(_ width: Int, _ height: Int, _ square: Int) throws -> Image {
        let small = try RenderFixture.image(width, height) { [UInt8($0), UInt8($1), UInt8(($0 * 7 + $1 * 13) % 256)] }
        return try VipsCall("zoom", ["input": .image(small), "xfac": .int(square), "yfac": .int(square)]).image()
    }

    private static func tiff(
        _ image: Image, isTiled: Bool = true, isPyramid: Bool = true, subIFD: Bool = false
    ) throws -> [UInt8] {
        try VipsCall(
            "tiffsave_buffer",
            [
                "in": .image(image), "tile": .bool(isTiled), "pyramid": .bool(isPyramid), "tile-width": 256,
                "tile-height": 256, "compression": "lzw", "subifd": .bool(subIFD),
            ]
        ).bytes()
    }

    /// 16,000 × 10,000 pixels.
    private static let large: [UInt8] = (try? tiff(squares(160, 100, 100))) ?? []

    private static func job(_ bytes: [UInt8], _ recipe: String, quality: RenderQuality = .balanced) throws -> RenderJob
    {
        try RenderSamples.job(bytes, recipe, quality: quality)
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

    @Test(arguments: [false, true]) func `the header counts the smaller versions`(subIFD: Bool) throws {
        let image = try Self.squares(41, 21, 25)
        let header = try ImageHeader.probe(Self.tiff(image, subIFD: subIFD))
        #expect(header.width == 1025 && header.height == 525 && header.levels == 2 && header.readsWindows)
        #expect(try ImageHeader.probe(Self.tiff(image, isPyramid: false)).levels == 0)
        let strips = try ImageHeader.probe(Self.tiff(image, isTiled: false, isPyramid: false))
        #expect(strips.levels == 0 && !strips.readsWindows)
    }

    @Test func `160 megapixels give tiles of all sizes within a worker's memory`() async throws {
        let header = try ImageHeader.probe(Self.large)
        #expect(header.encodedWidth == 16_000 && header.encodedHeight == 10_000 && header.levels == 6)
        try await Self.withPool { pool in
            // At full resolution: the squares from 90, 60.
            let tile = try await RenderSamples.decoded(
                pool.render(Self.job(Self.large, "crop:512x512+9000+6000,png:lossless")).bytes)
            #expect(tile.width == 512 && tile.height == 512)
            for (x, y) in [(0, 0), (99, 99), (100, 0), (511, 511)] {
                let (column, row) = (90 + x / 100, 60 + y / 100)
                let color = [UInt8(column), UInt8(row), UInt8((column * 7 + row * 13) % 256), 255]
                #expect(Array(tile.pixels[(y * 512 + x) * 4..<(y * 512 + x) * 4 + 4]) == color, "\(x), \(y)")
            }
            for (recipe, width, height) in [
                ("crop:8192x8192+0+0,thumbnail:512x512:stretch:up", 512, 512),
                ("crop:7808x1808+8192+8192,thumbnail:488x113:stretch:up", 488, 113),
                ("thumbnail:500", 500, 313), ("crop:16000x10000+0+0,thumbnail:250x156:stretch:up", 250, 156),
            ] {
                let part = try await RenderSamples.decoded(pool.render(Self.job(Self.large, recipe + ",png")).bytes)
                #expect(part.width == width && part.height == height, "\(recipe)")
            }
        }
    }

    @Test(arguments: ["crop:12000x10000+0+0", "blur:1,thumbnail:100", "rotate:90", ""])
    func `a part of more than limits pixels is refused`(recipe: String) throws {
        let error = #expect(throws: RenderError.self) { try Self.job(Self.large, recipe).checkLimits() }
        #expect(error?.code == .overLimit && error?.message.contains("limits.pixels = 100000000") == true)
        #expect(error?.message.contains("begin the recipe with a smaller `crop`, or raise the limit") == true)
    }

    @Test func `without tiles or smaller versions, the complete picture counts`() throws {
        // 16,000 × 6,400 pixels.
        let image = try Self.squares(160, 64, 100)
        let tiles = try Self.tiff(image, isPyramid: false)
        try Self.job(tiles, "crop:512x512+9000+6000").checkLimits()
        let strips = try Self.tiff(image, isTiled: false, isPyramid: false)
        for (bytes, recipe) in [
            (tiles, "thumbnail:300"), (strips, "crop:512x512+9000+6000"), (strips, "thumbnail:300"),
        ] {
            let error = #expect(throws: RenderError.self) { try Self.job(bytes, recipe).checkLimits() }
            #expect(error?.code == .overLimit && error?.message.contains("16000 × 6400") == true)
        }
    }

    @Test func `the orientation is applied to the complete picture`() throws {
        var job = try Self.job(Self.large, "crop:512x512+9000+6000")
        job.header.orientation = 6
        #expect(throws: RenderError.self) { try job.checkLimits() }
        job.recipe = try Recipe("orient:off,crop:512x512+9000+6000")
        try job.checkLimits()
    }

    @Test func `a smaller version is read if it is large enough and the region has whole pixels in it`() throws {
        let bytes = try Self.tiff(Self.squares(41, 33, 64))  // 2624 × 2112 pixels
        func plan(_ recipe: String, _ quality: RenderQuality = .fast) throws -> RenderPlan {
            RenderPlan(try Self.job(bytes, recipe, quality: quality))
        }
        #expect(try plan("thumbnail:100").shrink == 16 && plan("thumbnail:100", .best).shrink == 1)
        #expect(try plan("crop:1024x1024+512+0,thumbnail:256x256").shrink == 2)
        #expect(try plan("crop:1024x1024+512+0,thumbnail:256x256").read == PixelSize(width: 512, height: 512))
        #expect(try plan("crop:1024x1024+512+0,thumbnail:64x64").shrink == 8)
        #expect(try plan("crop:1024x1024+510+0,thumbnail:64x64").shrink == 2)
        #expect(try plan("crop:1024x1023+512+0,thumbnail:64x64").shrink == 1)
        #expect(try plan("crop:1024x64+2112+2048,thumbnail:16x2").shrink == 16)
        #expect(try plan("flip:h,crop:1024x1024+512+0,thumbnail:256x256").window == nil)
        #expect(try plan("crop:1024x1024,thumbnail:256x256").window == nil)
    }

    @Test(arguments: [false, true], [RenderQuality.fast, .balanced])
    func `tiles look like the same parts of a picture without smaller versions`(
        subIFD: Bool, quality: RenderQuality
    ) async throws {
        let image = try RenderFixture.gradientImage(1203, 905)
        let (pyramid, plain) = (
            try Self.tiff(image, subIFD: subIFD), try Self.tiff(image, isTiled: false, isPyramid: false)
        )
        for recipe in [
            "crop:512x512+0+0,thumbnail:64x64", "crop:179x393+1024+512,thumbnail:23x50:stretch:up",
            "crop:691x393+512+512,thumbnail:173x99:stretch:up", "thumbnail:100", "crop:100x100+600+600",
            "crop:512x512+256+256,thumbnail:64x64,flip:h",
        ] {
            let shown = try await RenderFixture.renderer.pixels(Self.job(pyramid, recipe, quality: quality))
            let expected = try await RenderFixture.renderer.pixels(Self.job(plain, recipe, quality: quality))
            #expect(shown.width == expected.width && shown.height == expected.height)
            let differences = zip(shown.pixels, expected.pixels).map { abs(Int($0) - Int($1)) }
            let mean = Double(differences.reduce(0, +)) / Double(differences.count)
            #expect(recipe.contains("thumbnail") ? mean < 2 : mean == 0, "\(recipe): \(mean)")
        }
    }

    @Test(arguments: [RenderQuality.fast, .balanced])
    func `a JPEG is decoded at a fraction of its size for a coarse tile`(quality: RenderQuality) async throws {
        let image = try RenderFixture.gradientImage(1203, 905)
        let (jpeg, png) = (try RenderFixture.jpeg(image), try RenderFixture.png(image))
        for (recipe, shrink) in [
            ("crop:512x512+512+0,thumbnail:32x32", quality == .fast ? 8 : 4),
            ("crop:179x393+1024+512,thumbnail:12x25:stretch:up", quality == .fast ? 8 : 2),
            ("crop:691x393+512+512,thumbnail:173x99:stretch:up", quality == .fast ? 2 : 1),
            ("crop:512x512+511+0,thumbnail:32x32", 1), ("crop:512x512+512+0", 1),
            ("crop:512x512+512+0,blur:1,thumbnail:32", 1),
        ] {
            let job = try Self.job(jpeg, recipe, quality: quality)
            #expect(RenderPlan(job).shrink == shrink && (RenderPlan(job).window != nil) == (shrink > 1), "\(recipe)")
            let shown = try await RenderFixture.renderer.pixels(job)
            let expected = try await RenderFixture.renderer.pixels(Self.job(png, recipe, quality: quality))
            #expect(shown.width == expected.width && shown.height == expected.height)
            let differences = zip(shown.pixels, expected.pixels).map { abs(Int($0) - Int($1)) }
            #expect(Double(differences.reduce(0, +)) / Double(differences.count) < 2, "\(recipe)")
        }
        // All pixels are decoded, so the limit counts them.
        var job = try Self.job(jpeg, "crop:512x512+512+0,thumbnail:32x32")
        job.limits.pixels = 1_000_000
        #expect(throws: RenderError.self) { try job.checkLimits() }
        job.header.orientation = 6
        #expect(RenderPlan(job).shrink == 1)
    }

    @Test func `the profile and the credits of the picture apply to its smaller versions`() async throws {
        let meadow = try ProbeSampleTests.read("originals/wide-gamut-p3.jpg")
        let image = try meadow.withUnsafeBytes { try Decoding.open($0, .jpeg) }
        var bytes = try Self.tiff(image)
        // Change the tags of the profiles of the smaller versions, so that libvips does not find them.
        let first = try #require(bytes.withUnsafeBytes { TIFFHeader(ByteReader($0)) }).chain
        let entries = bytes.withUnsafeBytes { buffer in
            first.dropFirst().compactMap { TIFFHeader(ByteReader(buffer))?.entry(34675, in: $0) }
        }
        #expect(entries.count == first.count - 1 && !entries.isEmpty)
        for entry in entries { (bytes[entry], bytes[entry + 1]) = (0xFE, 0xFD) }
        let shown = try await RenderFixture.renderer.pixels(Self.job(bytes, "thumbnail:60", quality: .fast))
        let expected = try await RenderFixture.renderer.pixels(Self.job(meadow, "thumbnail:60", quality: .fast))
        let differences = zip(shown.pixels, expected.pixels).map { abs(Int($0) - Int($1)) }
        #expect(Double(differences.reduce(0, +)) / Double(differences.count) < 2)
    }

    @Test func `JPEG 2000 counts the part, too`() async throws {
        let image = try Self.squares(110, 100, 100)
        let bytes = try image.saved(by: "jp2ksave_buffer", ["in": .image(image), "lossless": true])
        try await Self.withPool { pool in
            for (recipe, width) in [
                ("crop:512x512+9000+6000", 512), ("crop:4096x4096+4096+4096,thumbnail:256x256", 256),
                ("thumbnail:100", 100),
            ] {
                var job = try Self.job(bytes, recipe)
                job.limits.formats.insert(.jp2)
                #expect(try await pool.render(job).width == width, "\(recipe)")
            }
            var job = try Self.job(bytes, "blur:1")
            job.limits.formats.insert(.jp2)
            #expect(await DecodedFormatsTests.refusal(pool, job)?.code == .overLimit)
        }
    }
}
