@testable import PipelineCaching
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// Two pipelines on one folder, as two processes are.
struct SharedFolderTests {
    @Test func `all that want a cold source at once get it, and who comes later finds it stored`() async throws {
        try await withPipeline { _ in
            picture("meadow-small.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=86400"])
        } _: { bench, pipeline in
            let others = try (0..<3).map { _ in try bench.pipeline() }
            let requests = try [20, 30, 40].map { try bench.request("/a.jpg", "thumbnail:\($0)") }
            let answers = try await withThrowingTaskGroup(of: (Int, [UInt8]).self) { group in
                for pipeline in others + [pipeline] {
                    for (at, request) in requests.enumerated() {
                        group.addTask { (at, try await pipeline.respond(to: request).bytes) }
                    }
                }
                return try await group.reduce(into: [Int: Set<[UInt8]>]()) { $0[$1.0, default: []].insert($1.1) }
            }
            // Each process does its own work once at most.
            let (asked, renders) = (bench.origin.requests.count, bench.renderer.renders)
            #expect((1...4).contains(asked) && (3...12).contains(renders))
            for other in others + [pipeline] { await other.shutdown() }
            let later = try bench.pipeline()
            for (at, request) in requests.enumerated() {
                let answer = try await later.respond(to: request)
                #expect(answer.outcome == .disk && answer.width == [20, 30, 40][at])
                // One that a process gave, whichever stored last. Renders that shared a decode may differ in their bytes.
                #expect(answers[at]?.contains(answer.bytes) == true)
            }
            #expect(bench.origin.requests.count == asked && bench.renderer.renders == renders)
            let stored = try #require(await later.diskStatistics())
            #expect(stored.records.entries == 1 && stored.originals.entries == 1 && stored.variants.entries == 3)
            await later.shutdown()
            #expect(try DiskStore(folder: bench.cache.path).verify().isClean)
        }
    }

    @Test func `what another process has just validated is not validated again`() async throws {
        // Of what the pipelines think, beside the time that transfers note.
        let later = Atomic<Int>(0)
        let now = { @Sendable in SystemClock.unix.seconds + Double(later.load(ordering: .relaxed)) }
        try await withPipeline {
            $0.now = now
        } handler: { request in
            request["if-none-match"] == nil
                ? picture("night-tiny.jpg", ["Cache-Control": "max-age=1000", "ETag": "\"1\""])
                : .response(304, ["Cache-Control": "max-age=90000", "ETag": "\"1\""])
        } _: { bench, pipeline in
            let other = try bench.pipeline { $0.now = now }
            let request = try bench.request()
            _ = try await pipeline.respond(to: request)
            await pipeline.drain()
            _ = try await other.respond(to: request)
            later.store(2000, ordering: .relaxed)
            #expect(try await pipeline.respond(to: request).originalOutcome == .revalidated)
            await pipeline.drain()
            // Its memory has the stale record still.
            let second = try await other.respond(to: request)
            #expect(second.outcome == .memory && !second.isStale && bench.origin.requests.count == 2)
            await other.shutdown()
        }
    }
}
