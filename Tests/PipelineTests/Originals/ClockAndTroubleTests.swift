@testable import PipelineFetching
import Glibc
import InMemoryLogging
import Logging
import Synchronization
import Testing
import Variants

@testable import Pipeline
@testable import PipelineCaching

@Sendable private func tagged(_ request: FetchRequest) -> ScriptedResponse {
    request.fields.first("if-none-match") == nil
        ? ScriptedResponse(200, "Cache-Control: max-age=600", "ETag: \"a\"", body: "b")
        : ScriptedResponse(304, "ETag: \"a\"")
}

struct ClockTests {
    @Test func `what was stored under a clock that has since been set back is validated once`() async throws {
        try await withCache(origin: tagged) { bench in
            _ = try await bench.get()
            bench.clock.advance(-86_400)
            let response = try await bench.get()
            #expect(response.handling.forward == .stale && response.handling.forwardStatus == 304)
            #expect(response.age == .seconds(0))
            #expect(try await bench.get().handling.isHit)
            #expect(bench.count == 2)
        }
    }

    @Test func `pictures are validated too, and keep their variants`() async throws {
        try await withCache { request in
            request.fields.first("if-none-match") == nil
                ? ScriptedResponse(200, "Cache-Control: max-age=600, stale-while-revalidate=600", "ETag: \"a\"")
                    .picture()
                : ScriptedResponse(304)
        } _: { bench in
            let first = try await bench.image()
            bench.clock.advance(-3600)
            let second = try await bench.image()
            #expect(second.originalOutcome == .revalidated && second.outcome == .memory && second.key == first.key)
        }
    }

    @Test func `the small step of a clock being corrected does no harm`() async throws {
        try await withCache(origin: tagged) { bench in
            _ = try await bench.get()
            bench.clock.advance(-1)
            let response = try await bench.get()
            #expect(response.handling.isHit && response.age == .seconds(0))
        }
    }

    @Test func `a clock set forward makes stale, and validation makes fresh again`() async throws {
        try await withCache(origin: tagged) { bench in
            _ = try await bench.get()
            bench.clock.advance(86_400)
            #expect(try await bench.get().handling.forwardStatus == 304)
            #expect(try await bench.get().handling.isHit)
        }
    }

    @Test func `a clock set back while the origin was asked does no harm`() async throws {
        let clock = Mutex<ManualClock?>(nil)
        try await withCache { _ in
            clock.withLock { $0?.advance(-50) }
            return ScriptedResponse(200, "Cache-Control: max-age=600", body: "b")
        } _: { bench in
            clock.withLock { $0 = bench.clock }
            _ = try await bench.get()
            let response = try await bench.get()
            #expect(response.handling.isHit && response.age == .seconds(0))
        }
    }
}

struct DiskTroubleTests {
    @Test func `a disk that fails while running costs no answer and is warned of once`() async throws {
        let folder = CacheFolder()
        let log = InMemoryLogHandler()
        try await withCache {
            $0.cacheFolder = folder.path
            $0.logger = Logger(label: "test") { _ in log }
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=600").picture()
        } _: { bench in
            let urls = (0..<5).map { "http://origin.test/\($0)" }
            _ = try await bench.get(url: urls[0])
            await bench.pipeline.drain()
            // The folder is gone and something else is in its place.
            rename(folder.path, folder.path + "-gone")
            close(open(folder.path, O_WRONLY | O_CREAT, 0o600))
            for url in urls {
                let response = try await bench.get(url: url)
                #expect(response.status == 200 && response.handling.isHit == (url == urls[0]))
                #expect(try await bench.get(url: url).handling.detail == "memory")
                let image = ImageRequest(.url(url), recipe: try Recipe("thumbnail:40"))
                _ = try await bench.pipeline.respond(to: image)
            }
            await bench.pipeline.drain()
            #expect(log.entries.count == 1)
            #expect(bench.pipeline.tiers.counters.failures > 1)
            #expect(bench.count == 5)
        }
    }
}
