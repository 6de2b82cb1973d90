import Testing

@testable import Variants

@Suite struct RenderWorkTests {
    private static func work(
        _ recipe: String, _ format: ImageFormat = .jpeg, width: Int = 4000, height: Int = 3000, pages: Int = 1
    ) throws -> RenderWork {
        var header = ImageHeader(format: format, encodedWidth: width, encodedHeight: height)
        header.pages = pages
        return RenderWork(RenderJob(original: [], header: header, recipe: try Recipe(recipe)))
    }

    private static func milliseconds(_ work: RenderWork) -> Double { work.decode + work.rest }

    @Test(arguments: [
        ("thumbnail:30", false), ("thumbnail:300,jpeg", false), ("thumbnail:1600,webp", false),
        ("thumbnail:800,png", false), ("thumbnail:300:fill,rounded-mask:12,avif", false),
        ("thumbnail:5000:up,blur:60,png", true), ("webp", true), ("thumbnail:1600,webp:lossless", true),
        ("thumbnail:1600,webp:max=20kB", true), ("thumbnail:1600,webp:score=70", true), ("blur:3", true),
        ("scaled:2,jpeg", true), ("rotate:12,png", true),
    ]) func `ordinary variants of 12 megapixels are short`(recipe: String, isLong: Bool) throws {
        #expect(try RenderCosts().isLong(Self.work(recipe)) == isLong)
    }

    @Test func `work grows with pixels and frames, and shrinks with what the decoder leaves out`() throws {
        func time(_ work: RenderWork) -> Double { Self.milliseconds(work) }
        #expect(try time(Self.work("blur:3", width: 8000)) > 1.9 * time(Self.work("blur:3")))
        let (still, moving) = (
            try Self.work("frames:all,thumbnail:200,gif", .gif, width: 400, height: 300),
            try Self.work("frames:all,thumbnail:200,gif", .gif, width: 400, height: 300, pages: 100)
        )
        #expect(time(moving) > 50 * time(still) && RenderCosts().isLong(moving))
        #expect(try Self.work("thumbnail:100:resample=fast").decode < 0.6 * Self.work("jpeg").decode)
        // A step that fails is found later; here it only must not stop anything.
        #expect(try time(Self.work("crop:10x10+9000+9000,png")) > 0)
        let huge = try Self.work("thumbnail:8000:up,blur:9,png", width: 60_000, height: 60_000)
        #expect(RenderCosts().isLong(huge))
    }

    @Test(
        arguments: [
            (ImageFormat.jpeg, 1, 10_000, nil), (.jpeg, 10, 10_000, nil), (.jpeg, 64, 10_000, nil),
            (.jpeg, 64, 20_000, "20000 × 20000 pixels of JPEG in 64 scans may take 18 s"), (.png, 1, 10_000, nil),
            (.png, 1, 20_000, "20000 × 20000 pixels of PNG may take 12 s"),
        ] as [(ImageFormat, Int, Int, String?)])
    func `what should take longer than it may is refused by its header`(
        format: ImageFormat, scans: Int, edge: Int, words: String?
    ) throws {
        let header = ImageHeader(format: format, encodedWidth: edge, encodedHeight: edge, scans: scans)
        var job = RenderJob(original: [], header: header, recipe: try Recipe("thumbnail:300"))
        job.limits.pixels = 1_000_000_000
        do throws(RenderError) {
            try job.checkLimits()
            #expect(words == nil)
        } catch {
            #expect(error.code == .overLimit && error.message.contains(words ?? "no error"), "\(error.message)")
            #expect(error.message.contains("limits.seconds = 10"))
        }
        job.limits.timeout = .seconds(60)
        try job.checkLimits()
        // A small picture is stopped when its time is over.
        job.header.encodedWidth = 100
        job.limits.timeout = .seconds(0)
        try job.checkLimits()
    }

    @Test func `drawings, a file far larger than its pixels and thousands of pages are long`() throws {
        func isLong(_ format: ImageFormat, bytes: Int, pages: Int = 1) throws -> Bool {
            let header = ImageHeader(format: format, encodedWidth: 64, encodedHeight: 64, pages: pages)
            let original = EncodedBytes(count: bytes, read: { nil })
            let output = ResolvedOutput(format: .jpeg)
            let recipe = try Recipe("thumbnail:20")
            return RenderCosts().isLong(
                RenderWork(RenderJob(original: original, header: header, recipe: recipe, output: output)))
        }
        #expect(try isLong(.svg, bytes: 100) && !isLong(.png, bytes: 100))
        #expect(try isLong(.jpeg, bytes: 400_000) && !isLong(.jpeg, bytes: 300_000))
        #expect(try !isLong(.gif, bytes: 400_000, pages: 30))
        #expect(try isLong(.webp, bytes: 400_000, pages: 5000) && !isLong(.webp, bytes: 400_000, pages: 1000))
        // Such a file does not change the estimates for others.
        var costs = RenderCosts()
        var work = try Self.work("thumbnail:30")
        work.isLong = true
        costs.learn(work, milliseconds: 10_000)
        #expect(try !costs.isLong(Self.work("thumbnail:30")))
    }

    @Test func `a render counts as long at four times its estimate, within bounds`() throws {
        let costs = RenderCosts()
        func patience(_ milliseconds: Double) -> Double {
            costs.longRenderThreshold(RenderWork(decode: 0, rest: milliseconds, kind: 1))
        }
        #expect(patience(1) == 0.1 && patience(50) == 0.2 && patience(240) == 0.25)
    }

    @Test func `pixels for display cost no encoder`() throws {
        let job = RenderJob(
            original: [], header: ImageHeader(format: .jpeg, encodedWidth: 4000, encodedHeight: 3000),
            recipe: try Recipe("png"))
        #expect(RenderWork(job, .pixels).rest < RenderWork(job).rest / 10)
    }

    @Test func `what renders did cost corrects the estimates of those with the same steps`() throws {
        var costs = RenderCosts()
        let (large, other) = (try Self.work("scaled:2,jpeg"), try Self.work("scaled:2,jpeg:90"))
        let small = try Self.work("thumbnail:1200,webp")
        #expect(costs.isLong(large) && costs.isLong(other) && !costs.isLong(small))
        costs.learn(large, milliseconds: 100)
        costs.learn(small, milliseconds: 900)
        #expect(!costs.isLong(large) && costs.isLong(other) && costs.isLong(small))
        // The same steps, for another picture.
        #expect(try costs.isLong(Self.work("thumbnail:1200,webp", width: 4200)))
        for _ in 0..<4 { costs.learn(small, milliseconds: 60) }
        #expect(!costs.isLong(small))
    }

    @Test func `small renders correct nothing, and no correction is boundless`() throws {
        var costs = RenderCosts()
        let large = try Self.work("blur:2,jpeg", width: 2000, height: 2000)
        #expect(costs.isLong(large))
        // A picture with so few pixels says nothing about the time for many.
        let tiny = try Self.work("blur:2,jpeg", width: 10, height: 10)
        #expect(tiny.kind == large.kind)
        costs.learn(tiny, milliseconds: 0.01)
        #expect(costs.isLong(large))
        let thumbnail = try Self.work("thumbnail:30")
        costs.learn(try Self.work("thumbnail:30", width: 8000, height: 6000), milliseconds: 1_000_000)
        let small = try Self.work("thumbnail:30", width: 400, height: 300)
        #expect(costs.isLong(thumbnail) && !costs.isLong(small))
    }

    @Test func `renders that share a decode are long together if one decode and all the rest take long`() throws {
        let work = try Self.work("thumbnail:900,webp")
        let costs = RenderCosts()
        #expect(!costs.isLong([work, work]) && costs.isLong([work, work, work, work, work, work, work, work]))
        let decoding = RenderWork(decode: 200, rest: 1, kind: 1)
        #expect(!costs.isLong([RenderWork](repeating: decoding, count: 16)))
    }

    @Test func `a bounded number of kinds is remembered`() {
        var costs = RenderCosts()
        func work(_ kind: Int) -> RenderWork { RenderWork(decode: 0, rest: 400, kind: kind) }
        for kind in 0..<600 { costs.learn(work(kind), milliseconds: 100) }
        #expect((0..<600).count { !costs.isLong(work($0)) } <= 512)
        #expect(!costs.isLong(work(599)))
    }
}
