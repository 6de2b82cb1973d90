import Testing

@testable import Variants

/// Several recipes of one original from one decode.
@Suite struct SharedDecodeTests {
    static let recipes = [
        "thumbnail:1200x1200", "thumbnail:600x600", "thumbnail:300x300", "thumbnail:150x150", "thumbnail:64x64",
    ]

    /// Jobs of one sample that share what they can.
    static func jobs(
        _ name: String, _ recipes: [String] = recipes, output: String = ",png"
    ) throws -> [RenderJob] {
        sharing(try recipes.map { try RenderSamples.job(name, $0 + output, quality: .balanced) }, named: name)
    }

    /// Jobs of one original that share what they can.
    static func sharing(_ jobs: [RenderJob], named name: String) -> [RenderJob] {
        let shared = SharedDecode(of: jobs.map(RenderPlan.init(alone:)), named: name)
        return jobs.map { job in
            var job = job
            job.shared = shared
            return job
        }
    }

    /// One render on this thread, as a worker makes it.
    static func render(_ job: RenderJob, _ pictures: SharedPictures = SharedPictures()) throws -> RenderedVariant {
        try VipsLibrary.load()
        let control = RenderControl()
        return try job.original.bytes().withUnsafeBytes { try Render(job, $0, control, pictures).variant() }
    }

    /// The results of a job with others and alone, and their mean CIEDE2000.
    private static func compared(
        _ job: RenderJob, _ pictures: SharedPictures = SharedPictures()
    ) async throws -> (together: RenderedVariant, alone: RenderedVariant, difference: Double) {
        try VipsLibrary.load()
        var single = job
        single.shared = nil
        let together = try render(job, pictures)
        let alone = try render(single)
        // Slow in a debug build.
        if together.bytes == alone.bytes { return (together, alone, 0) }
        let difference = ColorDifference.mean(
            try await RenderSamples.decoded(together.bytes), try await RenderSamples.decoded(alone.bytes))
        return (together, alone, difference ?? .infinity)
    }

    @Test(arguments: [
        "mountains-12mp.jpg", "dusk-2mp.jpg", "forest-portrait.jpg", "grey.jpg", "exif-orientation-6.jpg",
        "progressive.jpg", "wide-gamut-p3.jpg", "balloon-alpha.png", "moon-grey-alpha.png", "dusk.webp", "forest.avif",
        "cmyk-profile.jpg", "sky-16bit.png",
    ])
    func `what shares a decode has the size and the colours of what is rendered alone`(name: String) async throws {
        let pictures = SharedPictures()
        let jobs = try Self.jobs(name, Self.recipes + ["thumbnail:200x100:fill", "scaled:0.2,grayscale"])
        for job in jobs {
            let (together, alone, difference) = try await Self.compared(job, pictures)
            #expect((together.width, together.height) == (alone.width, alone.height))
            #expect(together.hasAlpha == alone.hasAlpha)
            // The worst of these is 0.51. The bound is 1.
            #expect(difference <= 0.6, "\(job.recipe)")
        }
        #expect(pictures.decodes == (name == "cmyk-profile.jpg" ? 0 : 1))
        #expect(pictures.isEmpty)
    }

    @Test(arguments: ["mountains-12mp.jpg", "dusk-2mp.jpg", "forest-portrait.jpg"])
    func `files of JPEG, PNG and GIF stay within the bound as well`(name: String) async throws {
        for output in [",jpeg", ",jpeg:40", ",gif"] {
            let pictures = SharedPictures()
            for job in try Self.jobs(name, ["thumbnail:1200", "thumbnail:300", "thumbnail:64"], output: output) {
                let difference = try await Self.compared(job, pictures).difference
                #expect(difference <= 1, "\(job.recipe)\(output)")
            }
        }
    }

    @Test(arguments: [
        "brightness:2", "contrast:2", "saturation:2", "blur:3", "pixelate:8", "tint:ff8800", "rotate:33", "circle",
        "crop:50x40", "extend:5,border:2:ff0000", "rounded-mask:9",
    ])
    func `steps behind the resize keep within the bound`(tail: String) async throws {
        for name in ["mountains-12mp.jpg", "dusk-2mp.jpg", "forest-portrait.jpg"] {
            let job = try Self.jobs(name, ["thumbnail:1200", "thumbnail:200," + tail])[1]
            #expect(job.shared?.includes(job) == true)
            let difference = try await Self.compared(job).difference
            #expect(difference <= 1, "\(name)")
        }
    }

    @Test(arguments: [
        "thumbnail:64,sharpen", "thumbnail:64,contrast:3", "thumbnail:64,brightness:1.5,saturation:1.5",
        "thumbnail:64,trim",
        "thumbnail:64x40:fill:gravity=attention", "thumbnail:64,crop:20x20:gravity=entropy",
        "crop:100x100,thumbnail:50x50", "trim,thumbnail:50", "grayscale", "thumbnail:5000", "blur:2,thumbnail:64",
    ])
    func `what could leave the bound, or does not begin by shrinking, is rendered alone`(recipe: String) throws {
        let jobs = try Self.jobs("dusk-2mp.jpg", ["thumbnail:300", recipe, "thumbnail:200"])
        let shared = try #require(jobs[1].shared)
        #expect(shared.members == 2 && shared.targets.map(\.size.width) == [300, 200])
        #expect(!shared.includes(jobs[1]) && shared.includes(jobs[0]) && shared.includes(jobs[2]))
        try VipsLibrary.load()
        var single = jobs[1]
        single.shared = nil
        #expect(try Self.render(jobs[1]).bytes == Self.render(single).bytes)
    }

    @Test func `frames of an animation are rendered alone`() throws {
        let jobs = try Self.jobs(
            "balloon.gif", ["frames:all,thumbnail:40", "thumbnail:30", "thumbnail:20"], output: ",gif")
        let shared = try #require(jobs[0].shared)
        #expect(!shared.includes(jobs[0]) && shared.includes(jobs[1]) && shared.members == 2)
    }

    @Test func `one render, or one that is not smaller, has nothing to share`() throws {
        #expect(try Self.jobs("dusk-2mp.jpg", ["thumbnail:300"])[0].shared == nil)
        #expect(try Self.jobs("night-tiny.jpg", ["thumbnail:5000", "thumbnail:6000"])[0].shared == nil)
    }

    @Test func `the smallest sizes share, up to sixteen, and larger ones are rendered alone`() throws {
        let many = try Self.jobs("mountains-12mp.jpg", (1...20).map { "thumbnail:\(40 * $0)" })
        let shared = try #require(many[0].shared)
        #expect(shared.targets.map(\.size.width) == (1...16).reversed().map { 40 * $0 })
        #expect(many.map { shared.includes($0) } == (1...20).map { $0 <= 16 })
        let large = try Self.jobs(
            "mountains-12mp.jpg", ["thumbnail:3900", "thumbnail:3800", "thumbnail:200", "thumbnail:90"])
        #expect(large.map { large[0].shared?.includes($0) } == [false, true, true, true])
    }

    @Test func `what its own decode would have averaged is averaged first`() throws {
        // 4000 × 3000: `balanced` has the decoder leave four pixels for each of the result, and decode in full for 1200.
        let jobs = try Self.jobs("mountains-12mp.jpg", [1200, 900, 490, 240, 64].map { "thumbnail:\($0)" })
        let shared = try #require(jobs[0].shared)
        #expect(shared.shrink == 1)
        #expect(shared.targets.map(\.box) == [1, 1, 2, 4, 4])
        let fast = try Self.jobs("mountains-12mp.jpg", [1200, 64].map { "thumbnail:\($0):resample=fast" })
        #expect(fast[0].shared?.targets.map(\.box) == [1, 4])
        let best = try Self.jobs("mountains-12mp.jpg", [1200, 64].map { "thumbnail:\($0):resample=best" })
        #expect(best[0].shared?.targets.map(\.box) == [1, 1])
    }

    @Test
    func `what nothing is averaged for comes from the largest such picture, where that is half of what is decoded`()
        throws
    {
        func sources(_ name: String, _ edges: [Int], _ quality: String = "balanced") throws -> [Int?] {
            let jobs = try Self.jobs(name, edges.map { "thumbnail:\($0):resample=\(quality)" })
            let (shared, header) = (try #require(jobs[0].shared), jobs[0].header)
            let decoded = PixelSize(width: header.width / shared.shrink, height: header.height / shared.shrink)
            return shared.targets.map { shared.source(of: $0, decoded: decoded)?.size.width }
        }
        #expect(try sources("mountains-12mp.jpg", [1200, 900, 600, 490, 64]) == [nil, nil, 1200, nil, nil])
        #expect(try sources("mountains-12mp.jpg", [1200, 900, 590, 64], "best") == [nil, nil, 1200, 1200])
        #expect(try sources("mountains-12mp.jpg", [2100, 900], "best") == [nil, nil])
    }

    @Test func `of a small original, what is averaged over more than four pixels is rendered alone`() throws {
        // 1920 × 1080.
        let jobs = try Self.jobs("dusk-2mp.jpg")
        let shared = try #require(jobs[0].shared)
        #expect(jobs.map { shared.includes($0) } == [true, true, true, true, false])
    }

    @Test func `each render gives the same bytes without the others, in any order`() throws {
        try VipsLibrary.load()
        let jobs = try Self.jobs("dusk-2mp.jpg")
        let pictures = SharedPictures()
        let together = try jobs.map { try Self.render($0, pictures).bytes }
        let backwards = SharedPictures()
        #expect(try jobs.reversed().map { try Self.render($0, backwards).bytes } == together.reversed())
        #expect(try jobs.map { try Self.render($0).bytes } == together)
    }

    @Test func `the CPU of a decode is split among those that share it`() throws {
        try VipsLibrary.load()
        let pictures = SharedPictures()
        let jobs = try Self.jobs("mountains-12mp.jpg", ["thumbnail:300x300", "thumbnail:299x299"])
        let costs = try jobs.map { try Self.render($0, pictures).cpuTime }
        // Unsplit, the first would cost nearly everything.
        #expect(costs[1] > costs[0] / 4)
        #expect(pictures.takeBalance() == 0)
    }

    @Test func `what a failed render owed is not charged to the next`() throws {
        try VipsLibrary.load()
        let pictures = SharedPictures()
        var jobs = try Self.jobs("mountains-12mp.jpg", ["thumbnail:300,mask:none", "thumbnail:299"])
        jobs[0].masks = ["none": [1, 2, 3]]
        #expect(throws: RenderError.self) { try Self.render(jobs[0], pictures) }
        let stranger = try RenderSamples.job("night-tiny.jpg", "thumbnail:20,png")
        // Less than nothing, if it were.
        #expect(try Self.render(stranger, pictures).cpuTime > .zero)
    }

    @Test(arguments: [
        "mountains-12mp.jpg", "dusk-2mp.jpg", "wide-gamut-p3.jpg", "progressive.jpg", "grey.jpg", "cmyk-profile.jpg",
    ])
    func `tiles of a JPEG share a decode and have the bytes of separate renders`(name: String) throws {
        try VipsLibrary.load()
        let header = try RenderSamples.job(name, "png").header
        let (width, height) = (header.encodedWidth, header.encodedHeight)
        let (w, h) = (width / 3, height / 4)
        for recipes in [
            [
                "crop:\(w)x\(h)+0+\(h)", "crop:\(w)x\(h)+\(w)+\(2 * h),scaled:0.9",
                "crop:\(w)x\(h)+\(w / 2)+\(h + 5),blur:2",
            ],
            ["crop:64x64+16+32,thumbnail:16", "crop:64x96+32+32,thumbnail:16,sharpen", "crop:64x64+0+64,scaled:0.25"],
            // At the right and bottom edges, the squares of the decoder are incomplete.
            [
                "crop:\(width)x\(height)+\((width - 65) / 8 * 8)+\((height - 33) / 8 * 8),thumbnail:8",
                "crop:64x64+0+64,thumbnail:8",
            ],
        ] {
            let pictures = SharedPictures()
            for job in try Self.jobs(name, recipes) {
                #expect(job.shared?.area != nil && job.shared?.members == recipes.count)
                var alone = job
                alone.shared = nil
                #expect(try Self.render(job, pictures).bytes == Self.render(alone).bytes, "\(job.recipe)")
            }
            #expect(pictures.decodes == (name == "cmyk-profile.jpg" ? 0 : 1))
            #expect(pictures.isEmpty)
        }
    }

    @Test func `tiles share a decode only at one size and within one limited area`() throws {
        func members(_ name: String, _ recipes: [String]) throws -> [Int] {
            let jobs = try Self.jobs(name, recipes)
            return jobs.indices.filter { jobs[$0].shared?.includes(jobs[$0]) == true }
        }
        #expect(
            try members(
                "mountains-12mp.jpg",
                ["crop:64x64+0+0,thumbnail:8", "crop:64x64+0+0", "thumbnail:64", "crop:64x64+64+0,thumbnail:8"]) == [
                    0, 3,
                ])
        // Rotated originals and other formats decode alone.
        for name in ["exif-orientation-6.jpg", "balloon-alpha.png"] {
            #expect(try members(name, ["crop:9x9+0+0", "crop:9x9+9+0"]) == [])
        }
        let huge = ["+0+0", "+4000+0", "+29000+29000", "+0+900"].map {
            RenderFixture.job([], .jpeg, 30_000, 30_000, try! Recipe("crop:512x512" + $0))
        }
        // A part above the limit does not share, and neither do the parts inside it.
        let inside = ["crop:9000x9000+0+0", "crop:512x512+0+0", "crop:512x512+9+9"].map {
            RenderFixture.job([], .jpeg, 30_000, 30_000, try! Recipe($0))
        }
        #expect(SharedDecode(of: inside.map(RenderPlan.init(alone:)), named: "inside") == nil)
        let shared = try #require(SharedDecode(of: huge.map(RenderPlan.init(alone:)), named: "huge"))
        #expect(shared.area == PixelRectangle(x: 0, y: 0, width: 4512, height: 1412) && shared.members == 3)
    }

    @Test func `a tile above the damaged rows of a JPEG does not fail with the tiles below`() throws {
        try VipsLibrary.load()
        let whole = try RenderSamples.job("dusk-2mp.jpg", "png").original.bytes()
        let jobs = try ["crop:64x64+0+0,png", "crop:64x64+64+1000,png"].map { recipe in
            var job = try RenderSamples.job("dusk-2mp.jpg", recipe)
            job.original = EncodedBytes(Array(whole.prefix(whole.count / 2)))
            job.limits.acceptsDamaged = false
            return job
        }
        let pictures = SharedPictures()
        let shared = Self.sharing(jobs, named: "cut")
        #expect(try Self.render(shared[0], pictures).bytes == Self.render(jobs[0]).bytes)
        #expect(throws: RenderError.self) { try Self.render(shared[1], pictures) }
    }

    @Test func `pictures of another original are let go of`() throws {
        try VipsLibrary.load()
        let pictures = SharedPictures()
        let first = try Self.jobs("dusk-2mp.jpg")
        _ = try Self.render(first[0], pictures)
        #expect(!pictures.isEmpty)
        pictures.keep(only: first[1].shared)
        #expect(!pictures.isEmpty)
        pictures.keep(only: try Self.jobs("forest-portrait.jpg")[0].shared)
        #expect(pictures.isEmpty)
        let second = try Self.jobs("forest-portrait.jpg")
        #expect(try Self.render(second[2], pictures).bytes == Self.render(second[2]).bytes)
    }
}

extension SharedDecode {
    fileprivate func includes(_ job: RenderJob) -> Bool { includes(RenderPlan(alone: job)) }
}
