import TestSupport
import Testing

@testable import Variants

@Suite struct DecodedFormatsTests {
    private static let careful = InProcessRenderer(maxConcurrentRenders: 1)

    private static func picture(_ format: ImageFormat) async throws -> [UInt8] {
        let jpeg = try RenderFixture.jpeg(RenderFixture.gradientImage(60, 40))
        let job = RenderFixture.job(jpeg, .jpeg, 60, 40, try Recipe("thumbnail:60"), ResolvedOutput(format: format))
        return try await RenderFixture.renderer.render(job).bytes
    }

    static func refusal(_ renderer: any Rendering, _ job: RenderJob) async -> RenderError? {
        do throws(RenderError) {
            _ = try await renderer.render(job)
            return nil
        } catch {
            return error
        }
    }

    @Test func `AVIF is decoded in process only by a renderer that names it`() async throws {
        let job = RenderFixture.job(try await Self.picture(.avif), .avif, 60, 40, try Recipe("thumbnail:20"))
        let error = await Self.refusal(Self.careful, job)
        #expect(error?.code == .unsupportedFormat && error?.message.contains("only in render workers") == true)
        #expect(error?.message.contains("inProcessFormats") == true)
        #expect(await Self.refusal(RenderFixture.renderer, job) == nil)
        let pool = WorkerPool(WorkerPoolTests.configuration())
        #expect(await Self.refusal(pool, job) == nil)
        await pool.shutdown()
    }

    @Test func `a refusal says nothing of what decoded before`() async throws {
        let pool = WorkerPool(WorkerPoolTests.configuration())
        let (jpeg, png) = (try await Self.picture(.jpeg), try await Self.picture(.png))
        // Bytes between two segments: libjpeg warns of them, and decodes the picture.
        let odd = RenderFixture.job(jpeg[..<2] + [0, 0] + jpeg[2...], .jpeg, 60, 40, try Recipe("thumbnail:20"))
        #expect(await Self.refusal(pool, odd) == nil)
        let cut = RenderFixture.job(png.dropLast(png.count / 2), .png, 60, 40, try Recipe("thumbnail:20"))
        let text = try #require(await Self.refusal(pool, cut)).message
        #expect(text.contains("vipspng: ") && !text.contains("Jpeg"), "\(text)")
        await pool.shutdown()
    }

    @Test func `neither is an AVIF that is a mask or an overlay`() async throws {
        let (jpeg, avif) = (try await Self.picture(.jpeg), try await Self.picture(.avif))
        for (recipe, key) in [("mask:star", "star"), ("overlay:star", Recipe.overlayKey("star"))] {
            var job = RenderFixture.job(jpeg, .jpeg, 60, 40, try Recipe(recipe))
            job.masks = [key: avif]
            let error = await Self.refusal(Self.careful, job)
            #expect(error?.code == .maskUnavailable && error?.message.contains("avif") == true, "\(error as Any)")
            #expect(await Self.refusal(RenderFixture.renderer, job) == nil)
        }
    }

    @Test func `a format that is not listed is refused in process and in workers, with the setting's name`()
        async throws
    {
        let pool = WorkerPool(WorkerPoolTests.configuration())
        let (jpeg, png) = (try await Self.picture(.jpeg), try await Self.picture(.png))
        for renderer in [RenderFixture.renderer, pool] as [any Rendering] {
            var job = RenderFixture.job(png, .png, 60, 40, try Recipe("thumbnail:20"))
            job.limits.formats = [.jpeg]
            let error = await Self.refusal(renderer, job)
            #expect(
                error?.code == .unsupportedFormat && error?.message.contains("`decoders` contains only jpeg") == true)
            job = RenderFixture.job(jpeg, .jpeg, 60, 40, try Recipe("mask:star"))
            job.limits.formats = [.jpeg]
            job.masks = ["star": png]
            #expect(await Self.refusal(renderer, job)?.code == .maskUnavailable)
            job.masks = ["star": jpeg]
            #expect(await Self.refusal(renderer, job) == nil)
        }
        await pool.shutdown()
    }
}
