import TestSupport
import Testing
import Variants

@testable import Pipeline

/// A worker that starts while the original is on its way.
struct FirstWorkerTests {
    private static func workers(_ configuration: inout PipelineConfiguration) {
        var workers = WorkerConfiguration()
        workers.maxConcurrentRenders = 2
        configuration.rendering.renderer = nil
        configuration.rendering.isolation = .workers(workers)
    }

    @Test
    func `a worker starts with a fetch of what will be rendered, and none with what is stored`() async throws {
        let (asked, asks) = AsyncStream<Void>.makeStream()
        let door = Gate()
        let bench = try PipelineBench { _ in .response(404) }
        defer { bench.origin.stop() }
        let pipeline = try bench.pipeline {
            Self.workers(&$0)
            $0.transport = GatedTransport(asks: asks, door: door)
        }
        let request = try bench.request()
        let running = Task { try await pipeline.respond(to: request) }
        for await _ in asked { break }
        // The origin has not answered, and does not until a worker is ready.
        await waitOrRecord { pipeline.workerStatistics?.started == 0 }
        door.open()
        #expect(try await running.value.outcome == .rendered)
        #expect(pipeline.workerStatistics?.started == 1)
        await pipeline.shutdown()

        let later = try bench.pipeline { Self.workers(&$0) }
        #expect(try await later.respond(to: request).outcome == .disk)
        await later.shutdown()
        #expect(later.workerStatistics?.started == 0)
    }

    @Test func `a body alone, and what is asked for whether it is good still, start none`() async throws {
        let fields: KeyValuePairs<String, String> = [
            "Content-Type": "image/jpeg", "Cache-Control": "no-cache", "ETag": "\"1\"",
        ]
        let bench = try PipelineBench { request in
            request["if-none-match"] == "\"1\"" ? .response(304, fields) : picture("night-tiny.jpg", fields)
        }
        defer { bench.origin.stop() }
        let pipeline = try bench.pipeline()
        _ = try await pipeline.respond(to: bench.request())
        await pipeline.shutdown()
        let other = try bench.pipeline { Self.workers(&$0) }
        #expect(try await other.respond(to: bench.request()).originalOutcome == .revalidated)
        _ = try await other.respond(to: bench.request("/b.jpg", nil))
        await other.shutdown()
        #expect(other.workerStatistics?.started == 0 && bench.origin.requests.count == 3)
    }
}
