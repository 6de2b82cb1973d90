@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// The timeout of a request.
@Suite(.timeLimit(.minutes(10))) struct TimeoutTests {
    /// Renders once a test opens its door.
    private final class SlowRenderer: Rendering {
        let inner = CountingRenderer()
        let door = Door()
        var libraries: RenderLibraries? { inner.libraries }
        func loadLibraries() async -> RenderLibraries? { await inner.loadLibraries() }
        func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant {
            await door.pass()
            return try await inner.render(job)
        }
        func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer { try await inner.pixels(job) }
    }

    private static func request(_ timeout: Duration?) throws -> ImageRequest {
        var request = ImageRequest(.url("http://origin.test/a"), recipe: try Recipe("thumbnail:20"))
        request.timeout = timeout
        return request
    }

    private static func code(_ pipeline: ImagePipeline, _ request: ImageRequest) async -> PipelineError.Code? {
        do throws(PipelineError) {
            _ = try await pipeline.respond(to: request)
            return nil
        } catch { return error.code }
    }

    @Test
    func `a wait for the origin is fetchTimedOut, a caller that waits longer is answered, a hit is never late`()
        async throws
    {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=60").picture()
        } _: { bench in
            let patient = bench.pipeline.load(try Self.request(nil))
            await door.arrivals(1)
            #expect(await Self.code(bench.pipeline, try Self.request(.milliseconds(1))) == .fetchTimedOut)
            let load = bench.pipeline.load(try Self.request(.milliseconds(1)))
            await #expect(throws: PipelineError.self) { _ = try await load.response }
            #expect(!load.status.isCancelled)
            door.open()
            #expect(try await patient.response.width == 20)
            #expect(bench.count == 1)
            #expect(try await bench.pipeline.load(Self.request(.zero)).response.outcome == .memory)
            #expect(await Self.code(bench.pipeline, try Self.request(.seconds(600))) == nil)
        }
    }

    @Test func `one that waits for a render is renderDeadline, and its callers may leave before`() async throws {
        let renderer = SlowRenderer()
        try await withCache {
            $0.rendering.renderer = renderer
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=60").picture()
        } _: { bench in
            let patient = bench.pipeline.load(try Self.request(nil))
            await renderer.door.arrivals(1)
            let late = await Self.code(bench.pipeline, try Self.request(.milliseconds(1)))
            #expect(late == .renderDeadline)
            let leaver = Task { await Self.code(bench.pipeline, try Self.request(.seconds(600))) }
            await waitOrRecord { bench.pipeline.renders.waiting < 2 }
            leaver.cancel()
            #expect(try await leaver.value == .cancelled)
            renderer.door.open()
            #expect(try await patient.response.width == 20)
        }
    }
}
