import Testing

@testable import Variants

@Suite struct RenderSafetyTests {
    private func code(_ job: RenderJob) async -> RenderError.Code? {
        do throws(RenderError) {
            _ = try await RenderFixture.renderer.render(job)
            return nil
        } catch {
            return error.code
        }
    }

    private func small() throws -> RenderJob {
        RenderFixture.job(
            try RenderFixture.jpeg(RenderFixture.gradientImage(40, 30)), .jpeg, 40, 30, RenderFixture.recipe())
    }

    @Test func `each limit refuses what its header or bytes exceed`() async throws {
        let changes: [(inout RenderJob) -> Void] = [
            { $0.limits.bytes = 10 }, { $0.limits.pixels = 1199 },
            { $0.header.scans = 65 }, { $0.header.profileBytes = 5 << 20 }, { $0.limits.outputEdge = 39 },
            { job in
                job.header.format = .gif
                job.header.pages = 300
                job.recipe.frames = .all
                job.output.format = .gif
            },
        ]
        for change in changes {
            var job = try small()
            change(&job)
            #expect(await code(job) == .overLimit)
        }
        #expect(await code(try small()) == nil)
    }

    @Test func `a truncated JPEG and a header that lies are undecodable`() async throws {
        var job = try small()
        job.original = EncodedBytes(Array(try job.original.bytes().dropLast(job.original.count / 3)))
        #expect(await code(job) == .undecodable)
        job = try small()
        job.header.encodedWidth = 41
        #expect(await code(job) == .undecodable)
    }

    @Test func `a cancelled task and a passed deadline stop a render`() async throws {
        var job = try small()
        job.limits.timeout = .seconds(0.000_001)
        job.original = EncodedBytes(try RenderFixture.png(RenderFixture.gradientImage(900, 700)))
        job.header = ImageHeader(format: .png, encodedWidth: 900, encodedHeight: 700)
        #expect(await code(job) == .deadline)
        job.limits.timeout = .seconds(100)
        let slow = job
        let task = Task { await code(slow) }
        task.cancel()
        #expect(await task.value == .cancelled)
    }

    @Test(arguments: [ImageFormat.jpeg, .webp]) func `metadata is stripped unless it is kept`(
        format: ImageFormat
    ) async throws {
        let tiff: [UInt8] = [
            0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0,
        ]
        let kept = KeptBlobs(exif: tiff, xmp: [UInt8]("<x:xmpmeta/>".utf8))
        var job = try small()
        job.original = EncodedBytes(kept.inserted(intoJPEG: try job.original.bytes()))
        job.header.orientation = 6
        job.output = ResolvedOutput(format: format)
        let stripped = try await RenderFixture.renderer.render(job).bytes
        #expect(!stripped.contains("Exif".utf8) && !stripped.contains("EXIF".utf8) && !stripped.contains("xmp".utf8))
        job.output.keep = [.exif, .xmp]
        let variant = try await RenderFixture.renderer.render(job)
        #expect(variant.width == 30 && variant.height == 40)
        #expect(variant.bytes.contains(KeptBlobs.upright(tiff)) && variant.bytes.contains("<x:xmpmeta/>".utf8))
    }

    @Test(arguments: [ImageFormat.jpeg, .webp]) func `a byte budget is met or refused`(
        format: ImageFormat
    ) async throws {
        var job = RenderFixture.job(
            try RenderFixture.jpeg(RenderFixture.gradientImage(200, 150)), .jpeg, 200, 150, RenderFixture.recipe())
        job.output = ResolvedOutput(format: format, quality: 95)
        let free = try await RenderFixture.renderer.render(job).bytes.count
        job.output.maxBytes = free / 2
        let variant = try await RenderFixture.renderer.render(job)
        #expect(variant.bytes.count <= free / 2)
        job.output.maxBytes = 60
        #expect(await code(job) == .overBudget)
    }
}
