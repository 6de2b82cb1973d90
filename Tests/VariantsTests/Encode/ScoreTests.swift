import Testing

@testable import Variants

@Suite struct ScoreTests {
    /// Changes to a picture.
    enum Change: CaseIterable {
        case stripes, blocks, blue

        func pixel(_ x: Int, _ y: Int, _ source: (Int, Int) -> [UInt8]) -> [UInt8] {
            let color = source(x, y)
            return switch self {
            case .stripes: (x / 3 + y / 5) % 3 == 0 ? color.map { $0 - min($0, 24) } : color
            case .blocks: source(x / 4 * 4, y / 4 * 4)
            case .blue: [color[0], color[1], UInt8(min(255, Int(color[2]) + 6))]
            }
        }
    }

    private static func pixels(
        _ width: Int, _ height: Int, bands: Int = 3, _ pixel: (Int, Int) -> [UInt8]
    ) -> EncodablePixels {
        var bytes: [UInt8] = []
        for y in 0..<height { for x in 0..<width { bytes += pixel(x, y) } }
        return EncodablePixels(storage: PixelStorage(bytes), width: width, height: height, bands: bands)
    }

    private static func gradient(_ width: Int, _ height: Int) -> EncodablePixels {
        pixels(width, height) { RenderFixture.gradient($0, $1, width, height) }
    }

    /// The score of other pixels, which are stored losslessly in between.
    private static func score(of copy: EncodablePixels, against original: EncodablePixels) throws -> Double {
        try VipsLibrary.load()
        return try PictureScore.measured(
            RenderFixture.png(copy.image()), .png, against: original, RenderControl())
    }

    private static func scored(_ pixels: EncodablePixels, _ output: String, _ target: Int) throws -> ScoredFile {
        try VipsLibrary.load()
        let header = ImageHeader(format: .jpeg, encodedWidth: pixels.width, encodedHeight: pixels.height)
        let resolved = try Recipe(output).resolvedOutput(for: header)
        let job = EncodeJob(output: resolved, kept: KeptBlobs(), control: RenderControl())
        return try Encoding.scored(pixels, job, target: Double(target))
    }

    // MARK: Measuring

    /// PyPI ssimulacra2 0.3.0 gives these values for the same pixels.
    @Test(arguments: [
        (Change.stripes, 300, 200, 58.24), (.blocks, 300, 200, 62.31), (.blue, 300, 200, 96.86),
        (.stripes, 129, 77, 73.73), (.blocks, 129, 77, 26.38), (.blue, 129, 77, 94.95),
        (.stripes, 64, 48, 82.75), (.blocks, 64, 48, 75.42), (.blue, 64, 48, 97.12),
        (.stripes, 33, 9, 93.65), (.blocks, 33, 9, 77.74), (.blue, 33, 9, 98.70),
        (.stripes, 8, 8, 96.77), (.blocks, 8, 8, 80.44), (.blue, 8, 8, 98.39),
    ])
    func `scores equal a different implementation's`(
        change: Change, width: Int, height: Int, expected: Double
    ) throws {
        let source: (Int, Int) -> [UInt8] = { RenderFixture.gradient($0, $1, width, height) }
        let changed = Self.pixels(width, height) { change.pixel($0, $1, source) }
        let score = try Self.score(of: changed, against: Self.gradient(width, height))
        #expect(abs(score - expected) < 0.02, "\(score)")
    }

    @Test(arguments: [1, 2, 7, 8, 9, 31, 64, 300], [1, 2, 7, 8, 9, 33, 65])
    func `equal pixels score 100 at any size, and changed pixels score less`(width: Int, height: Int) throws {
        let original = Self.gradient(width, height)
        #expect(try Self.score(of: original, against: original) == 100)
        let changed = Self.pixels(width, height) { [255 - RenderFixture.gradient($0, $1, width, height)[0], 0, 90] }
        #expect(try Self.score(of: changed, against: original) < 99)
    }

    @Test func `alpha counts, and colors behind transparent pixels do not`() throws {
        let original = Self.pixels(60, 40, bands: 4) { x, y in
            RenderFixture.gradient(x, y, 60, 40) + [x < 30 ? 0 : 255]
        }
        let repainted = Self.pixels(60, 40, bands: 4) { x, y in
            x < 30 ? [9, 9, 9, 0] : RenderFixture.gradient(x, y, 60, 40) + [255]
        }
        let faded = Self.pixels(60, 40, bands: 4) { x, y in
            RenderFixture.gradient(x, y, 60, 40) + [x < 30 ? 60 : 255]
        }
        #expect(try Self.score(of: repainted, against: original) == 100)
        #expect(try Self.score(of: faded, against: original) < 60)
        // The missing alpha of a file without it is opaque.
        let opaque = Self.gradient(60, 40)
        #expect(try Self.score(of: opaque, against: original) < 60)
    }

    @Test func `a file of a different size is refused, and measuring stops with its render`() throws {
        let original = Self.gradient(40, 30)
        let error = #expect(throws: RenderError.self) { try Self.score(of: Self.gradient(41, 30), against: original) }
        #expect(error?.message.contains("41 × 30 pixels instead of 40 × 30") == true)
        let control = RenderControl()
        control.stop(.cancelled)
        let file = try RenderFixture.png(original.image())
        #expect(throws: RenderError(.cancelled, "the render was cancelled")) {
            try PictureScore.measured(file, .png, against: original, control)
        }
    }

    @Test(arguments: [ImageFormat.jpeg, .webp, .avif, .jxl])
    func `the score grows with the quality`(format: ImageFormat) throws {
        try VipsLibrary.load()
        let pixels = Self.gradient(160, 120)
        let job = EncodeJob(
            output: ResolvedOutput(format: format, chroma: .full), kept: KeptBlobs(), control: RenderControl())
        let scores = try [10, 40, 70, 95].map { quality in
            let file = try #require(format.encoder).init(job: job).encode(pixels, quality: quality)
            return try PictureScore.measured(file, format, against: pixels, RenderControl())
        }
        #expect(scores == scores.sorted() && scores[3] > 80 && scores[0] < 75, "\(scores)")
    }

    // MARK: Searching

    /// Scores by quality.
    enum Curve: CaseIterable {
        case typical, high, low, flat, steps, falling

        func score(_ quality: Int) -> Double {
            let q = Double(quality)
            return switch self {
            case .typical: 30 + 0.6 * q
            case .high: 80 + 0.19 * q
            case .low: 0.5 * q - 20
            case .flat: 50
            case .steps: Double(quality / 10) * 10
            case .falling: 90 - 0.5 * q
            }
        }
    }

    @Test(arguments: Curve.allCases, [10, 50, 70, 95])
    func `at most four encodes produce the smallest file that reaches the score`(curve: Curve, target: Int) throws {
        let formats = [ImageFormat.jpeg, .webp, .avif, .jxl]
        for format in formats {
            var tried: [ScoredFile] = []
            let search = ScoreSearch(target: Double(target), curve: try #require(format.encoder?.scores))
            let found = try search.result { quality throws(RenderError) in
                let file = ScoredFile(
                    bytes: [UInt8](repeating: 0, count: quality), quality: quality, score: curve.score(quality))
                tried.append(file)
                return file
            }
            #expect((1...4).contains(tried.count) && Set(tried.map(\.quality)).count == tried.count)
            #expect(tried.allSatisfy { (1...100).contains($0.quality) })
            let reaching = tried.filter { $0.score >= Double(target) }
            if found.score < Double(target) - 1.5 {
                #expect(reaching.isEmpty && found.score == tried.map(\.score).max())
            } else if found.score >= Double(target) {
                #expect(found.quality == reaching.map(\.quality).min())
            }
            if curve == .typical, target > 30, target < 90 { #expect(abs(found.score - Double(target)) <= 1.5) }
        }
    }

    @Test func `a file slightly below the score is preferred to one far above`() throws {
        let search = ScoreSearch(target: 70, curve: try #require(ImageFormat.jpeg.encoder?.scores))
        func found(_ low: Double, _ high: Double) throws -> Double {
            try search.result { quality throws(RenderError) in
                ScoredFile(bytes: [0], quality: quality, score: quality < 62 ? low : high)
            }.score
        }
        #expect(try found(69.2, 72) == 69.2)
        #expect(try found(69.2, 71.4) == 71.4)
        #expect(try found(68.4, 90) == 90)
    }

    @Test func `an error of the encoder ends the search`() throws {
        let search = ScoreSearch(target: 70, curve: try #require(ImageFormat.jpeg.encoder?.scores))
        var encodes = 0
        #expect(throws: RenderError.self) {
            try search.result { _ throws(RenderError) in
                encodes += 1
                throw RenderError(.encodingFailed, "no")
            }
        }
        #expect(encodes == 1)
    }

    @Test(arguments: ["jpeg", "webp", "avif", "jxl"], [55, 70])
    func `a photograph comes near its score in every format`(output: String, target: Int) async throws {
        let size = "thumbnail:200"
        let rgba = try await RenderSamples.pixels("dusk-2mp.jpg", size)
        let pixels = try EncodablePixels(
            storage: PixelStorage(rgba.pixels), width: rgba.width, height: rgba.height, bands: 4
        ).droppingOpaqueAlpha(RenderControl())
        let job = try RenderSamples.job("dusk-2mp.jpg", "\(size),\(output):score=\(target):keep=none")
        let file = try await RenderFixture.renderer.render(job).bytes
        let score = try PictureScore.measured(file, job.output.format, against: pixels, RenderControl())
        #expect(score >= Double(target) - 1.5 && score <= Double(target) + 3, "\(score)")
        let found = try Self.scored(pixels, output, target)
        #expect(found.score == score && found.bytes == file)
        // Equal input gives equal bytes.
        #expect(try await RenderFixture.renderer.render(job).bytes == file)
    }

    @Test func `formats without a quality cannot be searched`() {
        let error = #expect(throws: RenderError.self) { try Self.scored(Self.gradient(9, 9), "png", 70) }
        #expect(error?.code == .notApplicable)
    }

    @Test func `a byte limit is kept if the file that reaches the score exceeds it`() async throws {
        func render(_ options: String) async throws -> [UInt8] {
            try await RenderFixture.renderer.render(RenderSamples.job("dusk-2mp.jpg", "thumbnail:200,\(options)")).bytes
        }
        let free = try await render("jpeg:score=80")
        #expect(try await render("jpeg:score=80:max=\(free.count)") == free)
        let less = try await render("jpeg:score=80:max=\(free.count * 3 / 4)")
        #expect(less.count <= free.count * 3 / 4 && less.count * 10 >= free.count * 6)
        let error = await #expect(throws: RenderError.self) { try await render("jpeg:score=80:max=60") }
        #expect(error?.code == .overBudget)
    }

    @Test(arguments: ["webp", "jxl"])
    func `a drawing is lossless if a lossy file with the score has more bytes`(output: String) async throws {
        let drawing = try RenderFixture.png(
            RenderFixture.image(200, 160) { x, y in (x / 3 + y / 11) % 9 == 0 && y % 11 < 7 ? [220, 0, 0] : [9, 9, 9] })
        func render(_ options: String) async throws -> [UInt8] {
            try await RenderFixture.renderer.render(RenderSamples.job(drawing, output + options)).bytes
        }
        #expect(try await render(":score=90") == render(":lossless"))
    }

    @Test func `a lossless WebP replaces lossy files that are far below the score, unless it exceeds the limit`()
        async throws
    {
        let colorful = try RenderFixture.png(
            RenderFixture.image(64, 64) { x, y in [UInt8(x * 37 & 255), UInt8(y * 91 & 255), UInt8(x * y & 255)] })
        func render(_ output: String) async throws -> [UInt8] {
            try await RenderFixture.renderer.render(RenderSamples.job(colorful, output)).bytes
        }
        let lossless = try await render("webp:lossless")
        #expect(try await render("webp:score=95") == lossless)
        #expect(try await render("webp:score=95:max=\(lossless.count - 1)").count < lossless.count)
    }

    @Test func `the score of an animation is measured on its first frame`() async throws {
        let job = try RenderSamples.job("balloon.gif", "frames:all,webp:score=60")
        let file = try await RenderFixture.renderer.render(job).bytes
        #expect(try ImageHeader.probe(file).pages == job.header.pages)
    }
}
