@testable import HTTPCaching
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// A renderer with decodes for display that wait at a gate.
private final class GatedDecodes: Rendering {
    private let inner = InProcessRenderer(maxConcurrentRenders: 2)
    private let gate = Gate()
    private let count = Atomic<Int>(0)
    var decodes: Int { count.load(ordering: .relaxed) }

    func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant { try await inner.render(job) }

    func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer {
        count.add(1, ordering: .relaxed)
        do throws(PipelineError) { try await gate.pass() } catch { throw RenderError(.cancelled, "cancelled") }
        return try await inner.pixels(job)
    }

    func open() { gate.open() }
}

private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}

/// The work that requests of one program share, and the work that ends with a pipeline.
@Suite(.timeLimit(.minutes(10))) struct SharedRequestsTests {
    @Test func `callers that want the same pixels share a decode, and one that is cancelled leaves at once`()
        async throws
    {
        let renderer = GatedDecodes()
        try await withCache {
            $0.rendering.renderer = renderer
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=600").picture()
        } _: { bench in
            let variant = try await bench.image()
            let request = ImageRequest(.url(CachingBench.url), recipe: try Recipe("thumbnail:40"))
            let tasks = (0..<8).map { _ in Task { try await bench.pipeline.pixels(for: request) } }
            await waitOrRecord { bench.pipeline.decodes.waiting < 8 || renderer.decodes < 1 }
            #expect(renderer.decodes == 1)
            tasks[3].cancel()
            await #expect(throws: PipelineError.self) { _ = try await tasks[3].value }
            #expect(bench.pipeline.decodes.waiting == 7)
            renderer.open()
            for (index, task) in tasks.enumerated() where index != 3 {
                let pixels = try await task.value
                #expect(pixels.width == variant.width && pixels.height == variant.height)
            }
            #expect(renderer.decodes == 1)
        }
    }

    @Test func `bytes that come with a request are hashed and read on the pipeline's threads`() async throws {
        try await withCache {
            $0.maxConcurrentLookups = 1
        } origin: { _ in
            ScriptedResponse(404)
        } _: { bench in
            let pipeline = bench.pipeline
            for sourceID in [nil, "upload"] {
                var request = ImageRequest(
                    .bytes(sample("originals/night-tiny.jpg"), name: "upload"), recipe: try Recipe("thumbnail:20"))
                request.sourceID = sourceID
                _ = try await pipeline.respond(to: request)
                let gate = BlockingGate()
                pipeline.admit.threads.submit { gate.pass() }
                let answered = Flag()
                let hit = Task { [request] in
                    let response = try await pipeline.respond(to: request)
                    answered.set()
                    return response
                }
                for _ in 0..<1000 { await Task.yield() }
                #expect(!answered.isSet)
                gate.open()
                #expect(try await hit.value.outcome == .memory)
            }
        }
    }

    @Test func `requests with one source ID share a fetch, whatever their URLs`() async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=600").picture()
        } _: { bench in
            let tasks = ["a", "b", "c"].map { name in
                Task {
                    var request = ImageRequest(
                        .url("http://\(name).test/picture"), recipe: try Recipe("thumbnail:20"))
                    request.sourceID = "picture"
                    return try await bench.pipeline.respond(to: request)
                }
            }
            await bench.waiting(3)
            door.open()
            for task in tasks {
                let response = try await task.value
                #expect(response.width == 20)
            }
            #expect(bench.count == 1)
        }
    }

    @Test func `after shutdown every request fails and says why`() async throws {
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=600").picture()
        } _: { bench in
            let (pipeline, recipe) = (bench.pipeline, try Recipe("thumbnail:20"))
            let path = Samples.original("night-tiny.jpg")
            let sources: [ImageSource] = [
                .url(CachingBench.url), .file(path), .bytes(sample("originals/night-tiny.jpg"), name: "upload"),
            ]
            for source in sources { _ = try await pipeline.respond(to: ImageRequest(source, recipe: recipe)) }
            await pipeline.shutdown()
            for source in sources {
                for recipe in [recipe, nil] {
                    let request = ImageRequest(source, recipe: recipe)
                    await expectShutDown { _ = try await pipeline.respond(to: request) }
                    await expectShutDown { _ = try await pipeline.pixels(for: request) }
                    await expectShutDown { _ = try await pipeline.explain(request) }
                    await expectShutDown { _ = try await pipeline.load(request).response }
                }
            }
            await expectShutDown { _ = try await bench.get() }
            await expectShutDown { _ = try await pipeline.original(for: bench.request([]) { $0.method = "POST" }) }
        }
    }

    @Test func `what is under way when the pipeline is shut down ends with shutDown, unless it was cancelled`()
        async throws
    {
        let bench = try PipelineBench { _ in .raw("", then: [.hang]) }
        let pipeline = try bench.pipeline()
        let loader = ImageLoader(pipeline)
        let request = try bench.request()
        let loads = [pipeline.load(request), loader.load(request), pipeline.load(try bench.request("/a.jpg", nil))]
        let cancelled = pipeline.load(try bench.request("/b.jpg"))
        let raw = Task { try await pipeline.original(for: OriginalRequest(url: bench.origin.url("/c.jpg"))) }
        await waitOrRecord { bench.origin.requests.count < 3 }
        cancelled.cancel()
        await pipeline.shutdown()
        for load in loads {
            await expectShutDown { _ = try await load.response }
            #expect(!load.status.isCancelled)
        }
        await expectShutDown { _ = try await raw.value }
        let error = await #expect(throws: PipelineError.self) { _ = try await cancelled.response }
        #expect(error?.code == .cancelled)
        bench.origin.stop()
    }

    private func expectShutDown(_ body: () async throws -> Void) async {
        let error = await #expect(throws: PipelineError.self) { try await body() }
        #expect(error?.code == .shutDown && error?.message.contains("has been shut down") == true)
    }
}
