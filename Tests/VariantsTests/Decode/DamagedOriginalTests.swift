import Testing

@testable import Variants

/// Files that lack pixels: refused, or rendered as far as they go.
@Suite struct DamagedOriginalTests {
    /// Files of 200 × 300 pixels, and the rows that the first 60 % of their bytes have at least.
    private static func files() throws -> [(name: String, bytes: [UInt8], rows: Int)] {
        let image = try RenderFixture.gradientImage(200, 300)
        func jpeg(progressive: Bool) throws -> [UInt8] {
            try VipsCall("jpegsave_buffer", ["in": .image(image), "Q": 90, "interlace": .bool(progressive)]).bytes()
        }
        return [
            ("JPEG", try jpeg(progressive: false), 100), ("progressive JPEG", try jpeg(progressive: true), 0),
            ("PNG", try RenderFixture.png(image), 100),
        ]
    }

    private static func job(_ bytes: [UInt8], _ recipe: String, accepts: Bool) throws -> RenderJob {
        var job = try RenderSamples.job(bytes, recipe)
        job.limits.acceptsDamaged = accepts
        return job
    }

    @Test func `a file that is cut is refused unless the limits accept it, and then marked`() async throws {
        let pool = WorkerPool(WorkerPoolTests.configuration())
        for renderer in [RenderFixture.renderer, pool] as [any Rendering] {
            for (name, whole, rows) in try Self.files() {
                let cut = Array(whole.prefix(whole.count * 6 / 10))
                for recipe in ["png", "thumbnail:50,png"] {
                    let error = await DecodedFormatsTests.refusal(renderer, try Self.job(cut, recipe, accepts: false))
                    #expect(error?.code == .undecodable, "\(name) \(recipe)")
                    let full = try await renderer.render(Self.job(whole, recipe, accepts: true))
                    #expect(!full.isDamaged)
                    let part = try await renderer.render(Self.job(cut, recipe, accepts: true))
                    #expect(
                        part.isDamaged && part.width == full.width && part.height == full.height, "\(name) \(recipe)")
                    guard recipe == "png" else { continue }
                    let (found, expected) = (
                        try await RenderSamples.decoded(part.bytes), try await RenderSamples.decoded(full.bytes)
                    )
                    #expect(found.pixels.prefix(rows * 800) == expected.pixels.prefix(rows * 800), "\(name)")
                    #expect(found != expected, "\(name)")
                }
            }
        }
        await pool.shutdown()
    }

    @Test(arguments: [1, 2, 3, 4], [8, 16])
    func `rows that a PNG lacks are transparent, or the background`(bands: Int, bits: Int) async throws {
        let (width, height) = (40, 1100)
        var state: UInt32 = 7
        let noise = (0..<width * height * bands * bits / 8).map { _ -> UInt8 in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(state >> 24) | 1
        }
        try VipsLibrary.load()
        let label = bands < 3 ? bits == 8 ? "b-w" : "grey16" : bits == 8 ? "srgb" : "rgb16"
        let image = try Image(
            PixelStorage(noise), width: width, height: height, bands: bands, format: bits == 8 ? 0 : 2
        ).labeled(label)
        let whole = try RenderFixture.png(image)
        let expected = try await RenderSamples.decoded(whole).pixels
        let file = Array(whole.prefix(whole.count * 6 / 10))
        let variant = try await RenderFixture.renderer.render(Self.job(file, "png:lossless", accepts: true))
        #expect(variant.isDamaged && variant.width == width && variant.height == height)
        let found = try await RenderSamples.decoded(variant.bytes).pixels
        let rows = try #require(
            (0..<height).first { y in (0..<width * 4).allSatisfy { found[y * width * 4 + $0] == 0 } })
        #expect((560...700).contains(rows), "\(rows) rows")
        #expect(found[(rows * width * 4)...].allSatisfy { $0 == 0 })
        #expect(Array(found.prefix(rows * width * 4)) == Array(expected.prefix(rows * width * 4)))
        let flat = try await RenderFixture.renderer.pixels(Self.job(file, "background:ff0000", accepts: true))
        #expect(flat.pixels.suffix(4) == [255, 0, 0, 255])
        let empty = try Self.job(Array(whole.prefix(75)), "png", accepts: true)
        let error = await DecodedFormatsTests.refusal(RenderFixture.renderer, empty)
        #expect(error?.code == .undecodable && error?.message.contains("no row of its pixel data") == true)
    }

    @Test func `what can be mended is not damaged, and other formats are refused`() async throws {
        let png = try RenderFixture.png(RenderFixture.gradientImage(30, 20))
        let repaired = try await RenderFixture.renderer.render(Self.job(png.dropLast(16) + [], "png", accepts: true))
        #expect(!repaired.isDamaged)
        let bitmap = try Self.job(HandmadeBMP().file.dropLast(20) + [], "png", accepts: true)
        #expect(await DecodedFormatsTests.refusal(RenderFixture.renderer, bitmap)?.code == .undecodable)
    }

    @Test func `renders that share a decode are damaged alike, and an overlay is refused`() async throws {
        let (_, whole, _) = try Self.files()[0]
        let cut = Array(whole.prefix(whole.count * 6 / 10))
        let jobs = try ["thumbnail:40,png", "thumbnail:90,png"].map { recipe in
            var job = try Self.job(cut, recipe, accepts: true)
            job.digest = "cut"
            return job
        }
        for job in SharedDecodeTests.sharing(jobs, named: "cut") {
            #expect(try await RenderFixture.renderer.render(job).isDamaged)
        }
        var job = try Self.job(whole, "overlay:logo,png", accepts: true)
        job.masks = [Recipe.overlayKey("logo"): cut]
        #expect(await DecodedFormatsTests.refusal(RenderFixture.renderer, job)?.code == .maskUnavailable)
    }
}
