import Glibc
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Counts the renders that pass through to the real renderer.
final class CountingRenderer: Rendering {
    private let inner = InProcessRenderer(maxConcurrentRenders: 2)
    private let count = Atomic<Int>(0)
    var renders: Int { count.load(ordering: .relaxed) }
    var libraries: RenderLibraries? { inner.libraries }

    func loadLibraries() async -> RenderLibraries? { await inner.loadLibraries() }

    func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant {
        count.add(1, ordering: .relaxed)
        return try await inner.render(job)
    }

    func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer { try await inner.pixels(job) }
}

/// An origin with an answer that a test changes, the real renderer, and a cache folder removed afterwards.
final class PipelineBench: Sendable {
    let origin: LoopbackOrigin
    let renderer = CountingRenderer()
    let cache = CacheFolder()
    private let box: HandlerBox

    init(_ handler: @escaping @Sendable (OriginRequest) -> OriginReply) throws {
        let answer = HandlerBox(handler)
        box = answer
        origin = try LoopbackOrigin { request in answer.value.withLock { $0 }(request) }
    }

    private final class HandlerBox: Sendable {
        let value: Mutex<@Sendable (OriginRequest) -> OriginReply>
        init(_ handler: @escaping @Sendable (OriginRequest) -> OriginReply) { value = Mutex(handler) }
    }

    func answers(_ handler: @escaping @Sendable (OriginRequest) -> OriginReply) {
        box.value.withLock { $0 = handler }
    }

    func pipeline(_ configure: (inout PipelineConfiguration) -> Void = { _ in }) throws -> ImagePipeline {
        var configuration = PipelineConfiguration()
        configuration.cacheFolder = cache.path
        configuration.rendering.renderer = renderer
        configuration.fetch.allowPrivateAddresses = .all
        configuration.fetch.maxRetries = 0
        configure(&configuration)
        return try ImagePipeline(configuration)
    }

    func request(_ path: String = "/a.jpg", _ recipe: String? = "thumbnail:40") throws -> ImageRequest {
        ImageRequest(.url(origin.url(path)), recipe: try recipe.map { try Recipe($0) })
    }
}

/// Runs `body` with a bench and a pipeline on it; both are gone afterwards.
func withPipeline(
    _ configure: (inout PipelineConfiguration) -> Void = { _ in },
    handler: @escaping @Sendable (OriginRequest) -> OriginReply,
    _ body: (PipelineBench, ImagePipeline) async throws -> Void
) async throws {
    let bench = try PipelineBench(handler)
    let pipeline = try bench.pipeline(configure)
    do {
        try await body(bench, pipeline)
    } catch {
        bench.origin.stop()
        await pipeline.shutdown()
        throw error
    }
    bench.origin.stop()
    await pipeline.shutdown()
}

/// A file of the samples.
func sample(_ name: String) -> [UInt8] { Samples.bytes(name) }

func picture(_ name: String = "night-tiny.jpg", _ fields: KeyValuePairs<String, String>) -> OriginReply {
    .response(200, fields, body: sample("originals/" + name))
}

/// The error of a request that must fail.
func refusal(_ pipeline: ImagePipeline, _ request: ImageRequest) async -> PipelineError? {
    await #expect(throws: PipelineError.self) { _ = try await pipeline.respond(to: request) }
}

extension PipelineConfiguration {
    /// Answers for origins instead of libcurl.
    var transport: (any Transport)? {
        get { transports["http"] }
        set {
            transports["http"] = newValue
            transports["https"] = newValue
        }
    }
}
