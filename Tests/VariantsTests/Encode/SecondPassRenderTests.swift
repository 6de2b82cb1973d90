import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import Variants

/// Renders that encode again with more effort.
@Suite struct SecondPassRenderTests {
    private static func job(
        _ name: String, _ recipe: String = "thumbnail:320", _ accepted: [ImageFormat] = [.webp, .avif],
        isSecond: Bool = true
    ) throws -> RenderJob {
        var job = try RenderSamples.job(name, recipe + ",auto", quality: .balanced)
        let header = job.header
        job.output = try Recipe(recipe + ",auto").resolvedOutput(for: header, negotiated: accepted, hasSecondPass: true)
        if isSecond {
            job.masks[RenderJob.firstVersionKey] = try SharedDecodeTests.render(job).bytes
            job.output.isSecondPass = true
        }
        return job
    }

    /// The pixels that both versions encode.
    private static func pixels(_ name: String) async throws -> EncodablePixels {
        let picture = try await RenderSamples.decoded(
            SharedDecodeTests.render(RenderSamples.job(name, "thumbnail:320,png", quality: .balanced)).bytes)
        let opaque = stride(from: 0, to: picture.pixels.count, by: 4).flatMap { picture.pixels[$0..<$0 + 3] }
        return EncodablePixels(
            storage: PixelStorage(opaque), width: picture.width, height: picture.height, bands: 3, timing: nil)
    }

    @Test(arguments: ["dusk-2mp.jpg", "mountains-12mp.jpg", "forest-portrait.jpg"])
    func `the second version is at least 5 % smaller and scores at least as high`(name: String) async throws {
        try VipsLibrary.load()
        let pixels = try await Self.pixels(name)
        for (accepted, format) in [
            ([ImageFormat.webp, .avif], ImageFormat.webp), ([.jxl, .avif], .jxl), ([.avif], .avif),
        ] {
            let first = try SharedDecodeTests.render(Self.job(name, "thumbnail:320", accepted, isSecond: false))
            let second = try SharedDecodeTests.render(Self.job(name, "thumbnail:320", accepted))
            #expect(first.format == format && second.format == .avif)
            #expect(second.bytes.count * 100 <= first.bytes.count * 95)
            let scores = try [first, second].map {
                try PictureScore.measured($0.bytes, $0.format, against: pixels, RenderControl())
            }
            #expect(scores[1] >= scores[0], "\(scores)")
        }
    }

    @Test func `a first version with more effort keeps its score`() async throws {
        try VipsLibrary.load()
        let pixels = try await Self.pixels("forest-portrait.jpg")
        var job = try Self.job("forest-portrait.jpg", "thumbnail:320", [.jxl], isSecond: false)
        job.output.effort = 5
        let first = try SharedDecodeTests.render(job)
        job.output.effort = 3
        job.output.isSecondPass = true
        job.masks[RenderJob.firstVersionKey] = first.bytes
        let second = try SharedDecodeTests.render(job)
        let scores = try [first, second].map {
            try PictureScore.measured($0.bytes, $0.format, against: pixels, RenderControl())
        }
        #expect(scores[1] >= scores[0] && second.bytes.count <= first.bytes.count, "\(scores)")
    }

    @Test func `a drawing that is stored losslessly stays`() throws {
        try VipsLibrary.load()
        let drawing = try VipsCall(
            "pngsave_buffer",
            [
                "in": .image(
                    RenderFixture.image(200, 150) { x, y in (x / 50 + y / 50) % 2 == 0 ? [255, 0, 0] : [0, 0, 255] })
            ]
        ).bytes()
        var job = try RenderSamples.job(drawing, "auto", quality: .balanced)
        job.output = try Recipe("auto").resolvedOutput(
            for: job.header, negotiated: [.webp, .avif], hasSecondPass: true)
        #expect(job.output.format == .webp && job.output.alternatives == [.avif])
        let first = try SharedDecodeTests.render(job)
        job.output.isSecondPass = true
        job.masks[RenderJob.firstVersionKey] = first.bytes
        let second = try SharedDecodeTests.render(job)
        #expect(second.format == .webp && second.bytes == first.bytes)
        // A first version that cannot be read is an error.
        job.masks[RenderJob.firstVersionKey] = [1, 2, 3]
        #expect(throws: RenderError.self) { try SharedDecodeTests.render(job) }
    }

    /// The scheduling policies of a process's threads (proc(5), field 41 of `stat`).
    private static func policies(_ process: Int) -> Set<String> {
        let threads = FolderEntries.names("/proc/\(process)/task")
        return Set(
            threads.compactMap { thread in
                // The second field is a name in parentheses, which may contain spaces.
                FileText.read("/proc/\(process)/task/\(thread)/stat").split(separator: ")").last?
                    .split(separator: " ").dropFirst(38).first
            }.map(String.init))
    }

    @Test func `a worker in the background runs only on idle processors, and returns the format that it chose`()
        async throws
    {
        let pool = WorkerPool(WorkerPoolTests.configuration { $0.isBackground = true })
        let second = try await pool.render(Self.job("dusk-2mp.jpg", "thumbnail:320"))
        #expect(second.format == .avif)
        #expect(try ImageHeader.probe(second.bytes).format == .avif)
        #expect(second.cpuTime > .zero)
        let worker = try #require(WorkerPoolTests.workers().first { Self.policies($0) == ["5"] }, "SCHED_IDLE")
        // Other processes leave it no CPU time for longer than the limits allow.
        kill(pid_t(worker), SIGSTOP)
        var waiting = try RenderSamples.job("dusk-2mp.jpg", "thumbnail:40,png", quality: .balanced)
        waiting.limits.timeout = .seconds(0.4)
        let late = Task { [waiting] in try await pool.render(waiting) }
        let end = ContinuousClock.now + .seconds(0.8)
        try await waitWhile { ContinuousClock.now < end }
        kill(pid_t(worker), SIGCONT)
        #expect(try await late.value.width == 40 && pool.statistics.killed == 0)
        await pool.shutdown()
    }

    @Test func `other formats are possible only if the client accepts them and the recipe leaves the choice`() throws {
        let header = try RenderSamples.job("dusk-2mp.jpg", "png").header
        func output(_ recipe: String, _ accepted: [ImageFormat], hasSecondPass: Bool = true) throws -> ResolvedOutput {
            try Recipe(recipe).resolvedOutput(for: header, negotiated: accepted, hasSecondPass: hasSecondPass)
        }
        let both = try output("thumbnail:9,auto", [.webp, .avif])
        #expect(both.alternatives == [.avif] && both.secondFormats == [.avif])
        #expect(both.description.hasSuffix(":or=avif"))
        #expect(try output("thumbnail:9,auto", [.jxl, .avif]).secondFormats == [.jxl, .avif])
        #expect(try output("thumbnail:9,auto", [.jxl]).secondFormats == [.jxl])
        #expect(try output("thumbnail:9,auto", [.avif]).secondFormats == [.avif])
        let plain = try output("thumbnail:9,webp", [.webp, .avif])
        #expect(plain.alternatives == [] && plain.secondFormats == [])
        #expect(try output("thumbnail:9,auto", [.webp]) == plain)
        #expect(try output("thumbnail:9,auto", [.webp, .avif], hasSecondPass: false) == plain)
        for demand in ["auto:lossless", "auto:max=9kB", "auto:effort=2", "auto:score=70", "auto:80:effort=1"] {
            #expect(try output("thumbnail:9," + demand, [.jxl, .avif]).secondFormats == [], "\(demand)")
        }
        // The coefficients of the JPEG are kept.
        #expect(try output("auto", [.jxl, .avif]).secondFormats == [])
    }
}
