import Testing

@testable import Variants

/// Decisions by the finished pixels: losslessness, chroma, palettes.
@Suite struct DrawnPictureTests {
    /// Strokes of one colour on another, three pixels wide.
    private static func strokes(_ x: Int, _ y: Int, _ ink: [UInt8], on paper: [UInt8]) -> [UInt8] {
        (x / 3 + y / 11) % 9 == 0 && y % 11 < 7 ? ink : paper
    }

    private static let (red, white): ([UInt8], [UInt8]) = ([220, 0, 0], [255, 255, 255])

    private static func drawing(_ ink: [UInt8] = red, _ width: Int = 240, _ height: Int = 180) throws -> [UInt8] {
        try RenderFixture.png(RenderFixture.image(width, height) { x, y in strokes(x, y, ink, on: white) })
    }

    private static func look(_ pixels: PixelBuffer) throws -> PixelStatistics {
        let rgba = EncodablePixels(
            storage: PixelStorage(pixels.pixels), width: pixels.width, height: pixels.height, bands: 4)
        return try PixelStatistics(rgba.droppingOpaqueAlpha(RenderControl()), RenderControl())
    }

    private func render(_ original: [UInt8], _ recipe: String) async throws -> [UInt8] {
        try await RenderFixture.renderer.render(RenderSamples.job(original, recipe)).bytes
    }

    private func decoded(_ file: [UInt8]) async throws -> PixelBuffer {
        var job = try RenderSamples.job(file, "orient:off")
        job.limits.formats.insert(.jxl)
        return try await RenderFixture.renderer.pixels(job)
    }

    @Test(
        arguments: [
            "mountains-12mp.jpg", "dunes-2mp.jpg", "dusk-2mp.jpg", "forest-portrait.jpg", "meadow-small.jpg",
            "grey.jpg",
            "sky-16bit.png", "moon-grey-alpha.png",
        ], [32, 60, 150, 300])
    func `photographs do not look drawn, whatever their size`(name: String, size: Int) async throws {
        let look = try Self.look(await RenderSamples.pixels(name, "thumbnail:\(size)"))
        #expect(look == PixelStatistics())
    }

    @Test func `strokes look drawn, and have chroma detail if they are coloured`() async throws {
        for (ink, hasDetail) in [
            (Self.red, true), ([0, 0, 230], true), ([0, 0, 0], false), ([120, 128, 120], false),
        ] {
            let look = try Self.look(await RenderSamples.decoded(Self.drawing(ink)))
            #expect(look == PixelStatistics(isDrawn: true, hasChromaDetail: hasDetail), "\(ink)")
        }
        // Upright lines have no equal left neighbours.
        let rules = try RenderFixture.image(200, 160) { x, _ in [UInt8](repeating: UInt8(x % 40 * 6), count: 3) }
        let upright = try Self.look(await RenderSamples.decoded(RenderFixture.png(rules)))
        #expect(upright.isDrawn)
        let grid = try RenderFixture.image(200, 160) { x, y in
            [UInt8](repeating: UInt8(x % 5 * 40 + y % 7 * 12 % 80), count: 3)
        }
        let crossed = try Self.look(await RenderSamples.decoded(RenderFixture.png(grid)))
        #expect(crossed.isDrawn)
        // Flat parts do not make up for many colours.
        let colorful = try RenderFixture.image(200, 200) { x, y in
            x < 120 ? [255, 255, 255] : [UInt8(x), UInt8(y), UInt8(x * y & 255)]
        }
        let look = try Self.look(await RenderSamples.decoded(RenderFixture.png(colorful)))
        #expect(!look.isDrawn)
    }

    @Test func `a look at any shape of picture ends well, and stops with its render`() throws {
        for (width, height, bands) in [(1, 1, 3), (1, 9, 4), (9, 1, 3), (2, 2, 4), (3, 3, 3), (5, 3, 2), (1, 1, 1)] {
            let storage = PixelStorage(byteCount: width * height * bands)
            storage.mutableBytes.update(repeating: 7)
            let pixels = EncodablePixels(storage: storage, width: width, height: height, bands: bands)
            #expect(try !PixelStatistics(pixels, RenderControl()).hasChromaDetail)
            let control = RenderControl()
            control.stop(.cancelled)
            if bands > 2, height > 1 { #expect(throws: RenderError.self) { try PixelStatistics(pixels, control) } }
        }
    }

    @Test(arguments: ["webp", "jxl"])
    func `a drawn picture becomes lossless unless a quality is given`(format: String) async throws {
        let original = try Self.drawing()
        let exact = try await RenderSamples.decoded(original)
        let chosen = try await render(original, format)
        #expect(try await decoded(chosen) == exact)
        #expect(chosen == (try await render(original, format + ":lossless")))
        let quality = format == "webp" ? 82 : 79
        let lossy = try await render(original, "\(format):\(quality)")
        #expect(try await decoded(lossy) != exact)
        #expect(chosen.count * 2 <= lossy.count * 3)
        // It is lossless within a budget that it fits, too.
        #expect(try await render(original, format + ":max=100kB") == chosen)
    }

    /// Lines of letters, each of a few strokes of two pixels.
    private static func page(_ inks: [[UInt8]]) throws -> [UInt8] {
        let (width, height) = (900, 650)
        var random = SeededGenerator(seed: 11)
        var pixels = [UInt8](repeating: 255, count: width * height * 3)
        func fill(_ x: Int, _ y: Int, _ across: Int, _ down: Int, _ ink: [UInt8]) {
            for row in y..<y + down {
                for column in x..<x + across {
                    pixels.replaceSubrange((row * width + column) * 3..<(row * width + column) * 3 + 3, with: ink)
                }
            }
        }
        for y in stride(from: 12, to: height - 30, by: 27) {
            var x = 12
            while x < width - 120 {
                let ink = inks.randomElement(using: &random) ?? [0, 0, 0]
                for _ in 0..<Int.random(in: 2...9, using: &random) {
                    fill(x, y + Int.random(in: 0...4, using: &random), 2, 13, ink)
                    for level in [0, 6, 12] where Bool.random(using: &random) { fill(x + 1, y + level + 2, 7, 2, ink) }
                    x += Int.random(in: 8...12, using: &random)
                }
                x += 6
            }
        }
        return try RenderFixture.png(
            RenderFixture.image(width, height) { x, y in Array(pixels[(y * width + x) * 3..<(y * width + x) * 3 + 3]) })
    }

    @Test(arguments: [[[0, 0, 0]], [[255, 0, 0], [0, 0, 255]]] as [[[UInt8]]], [150, 300, 400])
    func `a page of text is lossless once shrunk, if that takes at most half as many bytes again`(
        inks: [[UInt8]], size: Int
    ) async throws {
        let page = try Self.page(inks)
        let step = "thumbnail:\(size),"
        let chosen = try await render(page, step + "webp")
        let lossless = try await render(page, step + "webp:lossless")
        let lossy = try await render(page, step + "webp:82")
        let isSmall = lossless.count * 2 <= lossy.count * 3
        #expect(isSmall == (size > 200), "\(lossless.count) of \(lossy.count)")
        #expect(chosen == (isSmall ? lossless : lossy))
    }

    @Test func `a photograph stays lossy, in the same bytes as with the default quality`() async throws {
        for format in ["webp", "jxl"] {
            let quality = format == "webp" ? 82 : 79
            let photograph = try ProbeSampleTests.read("originals/dusk-2mp.jpg")
            let plain = try await render(photograph, "thumbnail:200,\(format)")
            #expect(try await render(photograph, "thumbnail:200,\(format):\(quality)") == plain)
        }
    }

    /// The mean difference of a channel in the middle of the strokes, which half chroma resolution mixes with the paper.
    private func error(_ file: [UInt8]) async throws -> Double {
        let pixels = try await RenderSamples.decoded(file)
        var (sum, count) = (0, 0)
        for y in 0..<pixels.height {
            for x in 0..<pixels.width where Self.strokes(x, y, Self.red, on: Self.white) == Self.red {
                for (channel, value) in Self.red.enumerated() {
                    sum += abs(Int(pixels.pixels[(y * pixels.width + x) * 4 + channel]) - Int(value))
                    count += 1
                }
            }
        }
        return Double(sum) / Double(count)
    }

    @Test(arguments: ["jpeg", "avif"])
    func `red strokes keep full chroma, and are redder for it`(format: String) async throws {
        let original = try Self.drawing()
        let (auto, full) = (try await render(original, format), try await render(original, format + ":chroma=full"))
        let half = try await render(original, format + ":chroma=half")
        #expect(auto == full && half.count < full.count)
        #expect(try await error(full) * 2 < error(half))
        // Black strokes and photographs have chroma of half the resolution.
        let black = try Self.drawing([0, 0, 0])
        #expect(try await render(black, format) == render(black, format + ":chroma=half"))
        let photograph = try ProbeSampleTests.read("originals/meadow-small.jpg")
        #expect(
            try await render(photograph, "thumbnail:99,\(format)")
                == render(photograph, "thumbnail:99,\(format):chroma=half"))
        #expect(
            try await render(photograph, "thumbnail:99,\(format):95")
                == render(photograph, "thumbnail:99,\(format):95:chroma=full"))
    }

    @Test func `WebP converts coloured strokes to chroma of half the resolution sharply`() async throws {
        let pixels = try await RenderSamples.decoded(Self.drawing())
        let rgb = try EncodablePixels(
            storage: PixelStorage(pixels.pixels), width: pixels.width, height: pixels.height, bands: 4
        ).droppingOpaqueAlpha(RenderControl())
        func file(isSharp: Bool) throws -> [UInt8] {
            var job = EncodeJob(
                output: ResolvedOutput(format: .webp, quality: 82), kept: KeptBlobs(), control: RenderControl())
            job.hasChromaDetail = isSharp
            return try WebPOutput(job: job).encode(rgb, quality: 82)
        }
        let sharp = try file(isSharp: true)
        #expect(try await error(sharp) < error(file(isSharp: false)))
        #expect(try await render(Self.drawing(), "webp:82") == sharp)
    }

    // MARK: Originals of few colours

    /// Coloured lines in many directions, as a PNG with a palette of eight colours, or with every colour written out.
    static func lines(_ width: Int, _ height: Int, hasPalette: Bool) throws -> [UInt8] {
        let inks: [[UInt8]] = [
            white, [20, 20, 20], [200, 30, 30], [30, 30, 200], [30, 160, 30], [240, 200, 0], [120, 120, 120],
            [255, 140, 0],
        ]
        var random = SeededGenerator(seed: 5)
        let lines = (0..<18).map { _ in
            (
                Int.random(in: -9...9, using: &random), Int.random(in: 1...9, using: &random),
                Int.random(in: -2000...4000, using: &random)
            )
        }
        let image = try RenderFixture.image(width, height) { x, y in
            let line = lines.firstIndex { abs($0.0 * x + $0.1 * y - $0.2) < 9 }
            return inks[line.map { 1 + $0 % 7 } ?? 0]
        }
        guard hasPalette else { return try RenderFixture.png(image) }
        return try VipsCall(
            "pngsave_buffer", ["in": .image(image), "palette": true, "bitdepth": 4, "strip": true]
        ).bytes()
    }

    @Test func `a PNG of few colours gives PNGs with a palette, unless lossless is asked for`() async throws {
        let (palette, plain) = (try Self.lines(600, 400, hasPalette: true), try Self.lines(600, 400, hasPalette: false))
        #expect(try ImageHeader.probe(palette).hasFewColors && !ImageHeader.probe(plain).hasFewColors)
        func type(_ png: [UInt8]) -> UInt8 { png[25] }
        for recipe in ["thumbnail:250,png", "thumbnail:250", "thumbnail:250,original:progressive"] {
            #expect(try await type(render(palette, recipe)) == 3)
            #expect(try await type(render(plain, recipe)) == 2)
        }
        let exact = try await render(palette, "thumbnail:250,png:lossless")
        let small = try await render(palette, "thumbnail:250,png")
        #expect(type(exact) == 2 && small.count * 2 < exact.count)
        let expected = try await RenderFixture.renderer.pixels(RenderSamples.job(palette, "thumbnail:250"))
        #expect(try await RenderSamples.decoded(exact) == expected)
        // Nothing was mixed, so nothing is lost.
        #expect(try await RenderSamples.decoded(render(palette, "flip:h,flip:h,png")) == RenderSamples.decoded(palette))
        let (cut, plainCut) = (
            try await render(palette, "crop:200x200,png"), try await render(plain, "crop:200x200,png")
        )
        #expect(try await RenderSamples.decoded(cut) == RenderSamples.decoded(plainCut))
        let (all, few) = (try await RenderSamples.decoded(exact).pixels, try await RenderSamples.decoded(small).pixels)
        let mean = zip(all, few).reduce(0.0) { $0 + abs(Double($1.0) - Double($1.1)) } / Double(all.count)
        #expect(mean < 2)
    }

    @Test(arguments: [500, 400, 200, 50])
    func `a smaller PNG of one with few colours takes no more bytes`(size: Int) async throws {
        let original = try Self.lines(600, 400, hasPalette: true)
        let variant = try await render(original, "thumbnail:\(size),png")
        #expect(variant.count <= original.count && variant[25] == 3)
        // Paper stays as white as the page around it.
        let pixels = try await RenderSamples.decoded(variant).pixels
        let white = stride(from: 0, to: pixels.count, by: 4).count { pixels[$0..<($0 + 3)] == [255, 255, 255] }
        #expect(white * 12 > pixels.count, "\(white) of \(pixels.count / 4)")
    }

    @Test func `GIFs and PNGs of less than 8 bits have few colours`() throws {
        for (name, few) in [
            ("balloon-palette.png", true), ("balloon.gif", true), ("balloon-alpha.png", false),
            ("sky-16bit.png", false),
            ("balloon-lossless.webp", false), ("dusk-2mp.jpg", false),
        ] {
            #expect(try ImageHeader.probe(ProbeSampleTests.read("originals/" + name)).hasFewColors == few, "\(name)")
        }
        let bits = try VipsCall(
            "pngsave_buffer",
            ["in": .image(RenderFixture.image(9, 9, bands: 1) { x, _ in [x > 4 ? 255 : 0] }), "bitdepth": 1]
        ).bytes()
        #expect(try ImageHeader.probe(bits).hasFewColors && bits[24] == 1)
    }
}
