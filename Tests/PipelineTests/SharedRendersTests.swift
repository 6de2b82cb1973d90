import Synchronization
import TestSupport
import Testing

@testable import Pipeline
@testable import Variants

private let fresh: KeyValuePairs<String, String> = ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"]

/// Requests for variants of one original that wait for a worker, or for a thread, at the same time.
struct SharedRendersTests {
    private static let recipes = [
        "thumbnail:400", "thumbnail:200", "thumbnail:100,jpeg:60", "thumbnail:50,circle,webp",
    ]

    /// A renderer that renders one at a time, and what it may be asked.
    private struct OneAtATime: Sendable {
        let renderer: any Rendering
        let waiting: @Sendable () -> Int

        init(inWorkers: Bool) {
            if inWorkers {
                var configuration = WorkerConfiguration()
                configuration.maxConcurrentRenders = 1
                let pool = WorkerPool(configuration)
                (renderer, waiting) = (pool, { pool.waiting })
            } else {
                let own = InProcessRenderer(maxConcurrentRenders: 1)
                (renderer, waiting) = (own, { own.waiting })
            }
        }

        /// Makes the requests while another render holds the only place, so that their renders wait together.
        ///
        /// - Parameters:
        ///   - renders: how many of them have something to render.
        ///   - meanwhile: what happens when all wait.
        func meeting(
            _ pipeline: ImagePipeline, _ requests: [ImageRequest], renders: Int? = nil,
            meanwhile: ([Task<ImageResponse, any Error>]) async throws -> Void = { _ in }
        ) async throws -> [Task<ImageResponse, any Error>] {
            let gate = BlockingGate()
            defer { gate.open() }
            let bytes = sample("originals/night-tiny.jpg")
            let began = Flag()
            var job = RenderJob(
                original: EncodedBytes(count: bytes.count) {
                    began.set()
                    gate.pass()
                    return bytes
                }, header: try ImageHeader.probe(bytes), recipe: try Recipe("thumbnail:5"),
                output: ResolvedOutput(format: .png))
            // The gate takes as long as it takes.
            job.limits.timeout = .seconds(300)
            let holding = Task { [job] in try await renderer.render(job) }
            try await waitWhile { !began.isSet }
            let tasks = requests.map { request in Task { try await pipeline.respond(to: request) } }
            try await waitWhile { waiting() < renders ?? requests.count }
            try await meanwhile(tasks)
            gate.open()
            _ = try await holding.value
            return tasks
        }
    }

    private final class Flag: Sendable {
        private let value = Atomic<Bool>(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set() { value.store(true, ordering: .releasing) }
    }

    /// The bytes of variants of the sample, rendered alone or from one decode of these.
    private static func bytes(_ recipes: [String], sharing: Bool) async throws -> [[UInt8]] {
        let original = sample("originals/meadow-small.jpg")
        let header = try ImageHeader.probe(original)
        var jobs = try recipes.map { RenderJob(original: original, header: header, recipe: try Recipe($0)) }
        if sharing {
            let shared = try #require(SharedDecode(of: jobs.map(RenderPlan.init(alone:)), named: sha256Hex(original)))
            for index in jobs.indices { jobs[index].shared = shared }
        }
        let renderer = InProcessRenderer(maxConcurrentRenders: 1)
        var all: [[UInt8]] = []
        for job in jobs { all.append(try await renderer.render(job).bytes) }
        return all
    }

    @Test(arguments: [false, true])
    func `requests that wait together share one decode, and what is stored stays`(
        inWorkers: Bool
    ) async throws {
        let one = OneAtATime(inWorkers: inWorkers)
        try await withPipeline {
            $0.rendering.renderer = one.renderer
        } handler: { _ in
            picture("meadow-small.jpg", fresh)
        } _: { bench, pipeline in
            let requests = try Self.recipes.map { try bench.request("/a.jpg", $0) }
            var responses: [ImageResponse] = []
            for task in try await one.meeting(pipeline, requests) { responses.append(try await task.value) }
            #expect(bench.origin.requests.count == 1)
            #expect(responses.map(\.bytes) == (try await Self.bytes(Self.recipes, sharing: true)))
            let alone = try await Self.bytes(Self.recipes, sharing: false)
            #expect(responses.map(\.bytes) != alone)
            #expect(responses.map(\.width) == [400, 200, 100, 50])
            if inWorkers { #expect(pipeline.workerStatistics?.shared == 3) }

            // Stored variants are neither rendered again nor part of another decode.
            let more = ["thumbnail:120", "thumbnail:60"]
            let others = try more.map { try bench.request("/a.jpg", $0) }
            let again = try await one.meeting(pipeline, requests + others, renders: 2)
            for (task, response) in zip(again, responses) {
                let stored = try await task.value
                #expect(stored.outcome == .memory && stored.bytes == response.bytes && stored.key == response.key)
            }
            let expected = try await Self.bytes(more, sharing: true)
            for (task, bytes) in zip(again.suffix(2), expected) { #expect(try await task.value.bytes == bytes) }
        }
    }

    @Test(arguments: [false, true])
    func `a request that meets no other, or can share nothing, is rendered alone`(inWorkers: Bool) async throws {
        let one = OneAtATime(inWorkers: inWorkers)
        try await withPipeline {
            $0.rendering.renderer = one.renderer
        } handler: { request in
            picture(request.path == "/b.jpg" ? "night-tiny.jpg" : "meadow-small.jpg", fresh)
        } _: { bench, pipeline in
            let recipes = ["thumbnail:90", "crop:100x100,thumbnail:50", "thumbnail:64,sharpen"]
            let requests = try recipes.map { try bench.request("/a.jpg", $0) } + [bench.request("/b.jpg", recipes[0])]
            var responses: [[UInt8]] = []
            for task in try await one.meeting(pipeline, requests) { responses.append(try await task.value.bytes) }
            #expect(responses.dropLast() == (try await Self.bytes(recipes, sharing: false))[...])
            if inWorkers { #expect(pipeline.workerStatistics?.shared == 0) }
        }
    }

    @Test(arguments: [false, true])
    func `one that fails or is cancelled takes none of the others with it`(inWorkers: Bool) async throws {
        let one = OneAtATime(inWorkers: inWorkers)
        try await withPipeline {
            $0.rendering.renderer = one.renderer
        } handler: { _ in
            picture("meadow-small.jpg", fresh)
        } _: { bench, pipeline in
            // No quality of a picture of that size has so few bytes.
            let recipes = ["thumbnail:400", "thumbnail:700,jpeg:max=1kB", "thumbnail:200", "thumbnail:100"]
            let requests = try recipes.map { try bench.request("/a.jpg", $0) }
            let tasks = try await one.meeting(pipeline, requests) { tasks in
                tasks[2].cancel()
                #expect(await error(tasks[2])?.code == .cancelled)
            }
            #expect(try await tasks[0].value.width == 400)
            #expect(await error(tasks[1]) != nil)
            #expect(try await tasks[3].value.width == 100)
        }
    }

    private func error(_ task: Task<ImageResponse, any Error>) async -> PipelineError? {
        await #expect(throws: PipelineError.self) { _ = try await task.value }
    }
}
