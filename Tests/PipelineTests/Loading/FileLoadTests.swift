import Glibc
import MetricsTestKit
@testable import PipelineFetching
import PipelineSupport
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Loads of files that memory holds.
@Suite(.timeLimit(.minutes(10))) struct FileLoadTests {
    private let folder = ScratchFolder()

    private func write(_ name: String) { folder.write(sample("originals/\(name)"), to: "a.jpg") }

    private func request(inFolder: Bool = false) throws -> ImageRequest {
        let source = inFolder ? ImageSource.url("own:a.jpg") : .file("\(folder.path)/a.jpg")
        var request = ImageRequest(source, recipe: try Recipe("thumbnail:20"))
        if inFolder { request.folder = try OpenFolder("own", at: folder.path, followsLinks: false) }
        return request
    }

    /// All ways to ask that check a file apart from the stages.
    private static func ways(_ pipeline: ImagePipeline, _ request: ImageRequest) async throws -> [ImageResponse] {
        let loader = ImageLoader(pipeline)
        var timed = request
        timed.timeout = .seconds(600)
        return [
            try await pipeline.load(request).response, try await loader.load(request).response,
            try await pipeline.respond(to: timed), try await pipeline.load(timed).response,
        ]
    }

    @Test(arguments: [false, true])
    func `while a file is unchanged, a load is one hit without stages`(inFolder: Bool) async throws {
        let metrics = TestMetrics()
        func runs(_ metric: PipelineMetric, _ label: String) -> Int {
            metrics.timers(label: metric.name).filter { $0.dimensions.contains { $0.1 == label } }
                .reduce(0) { $0 + $1.values.count }
        }
        write("night-tiny.jpg")
        try await withPipeline({ $0.metrics = metrics }) { _ in
            .response(500)
        } _: { _, pipeline in
            let request = try request(inFolder: inFolder)
            _ = try await pipeline.respond(to: request)
            let expected = try await pipeline.respond(to: request)
            let (hits, admitted) = (runs(.requests, "hit"), runs(.stages, "admit"))
            for found in try await Self.ways(pipeline, request) {
                #expect(found.digest == expected.digest && found.bytes == expected.bytes)
                #expect(found.outcome == expected.outcome && found.originalOutcome == expected.originalOutcome)
                #expect(found.record == expected.record && !found.isStale && found.isStorable == expected.isStorable)
            }
            #expect(runs(.requests, "hit") == hits + 4 && runs(.stages, "admit") == admitted)
            let load = pipeline.load(request)
            #expect(await load.events.reduce(into: 0) { count, _ in count += 1 } == 2)
        }
    }

    @Test(arguments: [false, true]) func `a file that has changed is read again`(inFolder: Bool) async throws {
        write("night-tiny.jpg")
        try await withPipeline(handler: { _ in .response(500) }) { _, pipeline in
            let request = try request(inFolder: inFolder)
            let first = try await pipeline.respond(to: request)
            write("meadow-small.jpg")
            for found in try await Self.ways(pipeline, request) { #expect(found.digest != first.digest) }
            unlink("\(folder.path)/a.jpg")
            let load = pipeline.load(request)
            await #expect(throws: PipelineError.self) { _ = try await load.response }
        }
    }

    @Test func `a timeout ends a load whose file is not answered for`() async throws {
        write("night-tiny.jpg")
        let gate = BlockingGate()
        try await withPipeline({ $0.maxConcurrentLookups = 1 }) { _ in
            .response(500)
        } _: { _, pipeline in
            var request = try request()
            let loader = ImageLoader(pipeline)
            _ = try await pipeline.respond(to: request)
            request.timeout = .milliseconds(1)
            pipeline.fetch.threads.submit { gate.pass() }
            for load in [pipeline.load(request), loader.load(request)] {
                let failure = await #expect(throws: PipelineError.self) { _ = try await load.response }
                #expect(failure?.code == .fetchTimedOut && !load.status.isCancelled)
            }
            gate.open()
        }
    }
}
