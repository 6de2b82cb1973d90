@testable import PipelineCaching
@testable import PipelineFetching
import Testing

@testable import Pipeline

private let unreachable: ScriptedOrigin.Script = { request throws(FetchError) in
    throw FetchError(.unreachable, request.url, "nobody there")
}

@Suite(.timeLimit(.minutes(20))) struct StaleResponsesTests {
    @Test func `within stale-while-revalidate the response is immediate, and the origin is contacted once`()
        async throws
    {
        let door = Door()
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10, stale-while-revalidate=60", "ETag: \"a\"", body: "old")
        } _: { bench in
            _ = try await bench.get("X-Id: 0")
            bench.clock.advance(20)
            bench.origin.answers { _ in
                await door.pass()
                return ScriptedResponse(200, "Cache-Control: max-age=10", "ETag: \"b\"", body: "new")
            }
            for number in 1...5 {
                let response = try await bench.get("X-Id: \(number)")
                #expect(
                    response.text == "old" && response.handling.isHit && response.handling.timeToLive == .seconds(-10))
            }
            await door.arrivals(1)
            #expect(bench.count == 2 && bench.sent("if-none-match") == "\"a\"" && bench.sent("x-id") == "1")
            #expect(bench.pipeline.backgroundStatistics.running == 1)
            door.open()
            await bench.pipeline.drain()
            let counters = bench.pipeline.backgroundStatistics
            #expect(counters.started == 1 && counters.succeeded == 1 && counters.collapsed == 4)
            #expect(counters.running == 0 && counters.failed == 0)
            #expect(try await bench.get().text == "new")
            #expect(bench.count == 2)
        }
    }

    @Test func `beyond the window, and for pictures that are none, the origin is asked first`() async throws {
        try await withCache { _ in
            ScriptedResponse(404, "Cache-Control: max-age=10, stale-while-revalidate=10", "ETag: \"a\"")
        } _: { bench in
            _ = try await bench.get()
            bench.clock.advance(15)
            #expect(await bench.imageRefusal()?.code == .notFound)
            #expect(bench.count == 2 && bench.pipeline.backgroundStatistics.started == 0)
            bench.clock.advance(25)
            let response = try await bench.get()
            #expect(!response.handling.isHit && response.handling.forward == .stale)
            #expect(bench.pipeline.backgroundStatistics.started == 0)
        }
    }

    @Test func `a picture is stale at once too, and fresh after it`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10, stale-while-revalidate=60", "ETag: \"a\"").picture()
        } _: { bench in
            let first = try await bench.image()
            bench.clock.advance(20)
            let stale = try await bench.image()
            #expect(stale.isStale && stale.originalOutcome == .stale && stale.key == first.key)
            await bench.pipeline.drain()
            let fresh = try await bench.image()
            #expect(!fresh.isStale && fresh.originalOutcome == .none && bench.count == 2)
        }
    }

    @Test func `a failing validation in the background is counted and costs no answer`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10, stale-while-revalidate=60", "ETag: \"a\"", body: "old")
        } _: { bench in
            _ = try await bench.get()
            bench.clock.advance(20)
            bench.origin.answers(unreachable)
            for _ in 0..<2 {
                #expect(try await bench.get().text == "old")
                await bench.pipeline.drain()
            }
            #expect(bench.pipeline.backgroundStatistics.failed == 2)
        }
    }

    @Test func `shutting down waits for the background and stores what it brought`() async throws {
        let folder = CacheFolder()
        let door = Door()
        let bench = try CachingBench({ $0.cacheFolder = folder.path }) { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10, stale-while-revalidate=60", "ETag: \"a\"", body: "old")
        }
        _ = try await bench.get()
        bench.clock.advance(20)
        bench.origin.answers { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=10", body: "new")
        }
        _ = try await bench.get()
        await door.arrivals(1)
        let down = Task { await bench.pipeline.shutdown() }
        door.open()
        await down.value
        let store = try DiskStore(folder: folder.path)
        let record = try store.records(source: CachingBench.url).first
        #expect(record?.length == 3)
        #expect(try store.originalBody(digest: record?.digest ?? "") == Array("new".utf8))
        store.close()
    }

    @Test func `a dead origin leaves the stale response, unless that is forbidden`() async throws {
        for (control, mayHide) in [
            ("max-age=10", true), ("max-age=10, must-revalidate", false), ("s-maxage=10", false),
            ("max-age=10, proxy-revalidate", false), ("no-cache", false),
        ] {
            try await withCache { _ in
                ScriptedResponse(200, "Cache-Control: \(control)", "ETag: \"a\"", body: "old")
            } _: { bench in
                _ = try await bench.get()
                bench.clock.advance(3600)
                bench.origin.answers(unreachable)
                if mayHide {
                    let response = try await bench.get()
                    #expect(response.text == "old" && response.age == .seconds(3600))
                    #expect(response.handling.fieldValue() == "pipeline; fwd=stale; ttl=-3590")
                } else {
                    #expect(await bench.refusal()?.code == .fetchFailed, "\(control)")
                }
            }
        }
    }

    @Test func `stale-if-error hides an error within its window, and a stored 5xx hides nothing`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10, stale-if-error=60", "ETag: \"a\"", body: "old")
        } _: { bench in
            _ = try await bench.get()
            bench.clock.advance(30)
            bench.origin.answers { _ in ScriptedResponse(503, "Cache-Control: no-store", body: "down") }
            let hidden = try await bench.get()
            #expect(hidden.status == 200 && hidden.text == "old" && hidden.handling.forwardStatus == 503)
            bench.clock.advance(60)
            #expect(try await bench.get().status == 503)
            bench.origin.answers { _ in
                ScriptedResponse(503, "Cache-Control: max-age=5, stale-if-error=600", body: "busy")
            }
            #expect(try await bench.get().handling.isStored)
            bench.clock.advance(10)
            bench.origin.answers { _ in ScriptedResponse(500, body: "worse") }
            #expect(try await bench.get().status == 500)
            bench.origin.answers(unreachable)
            #expect(await bench.refusal()?.code == .fetchFailed)
        }
    }

    @Test func `at most so many validations run in the background`() async throws {
        let door = Door()
        try await withCache {
            $0.caching.maxConcurrentValidations = 2
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10, stale-while-revalidate=60", "ETag: \"a\"")
        } _: { bench in
            let urls = (0..<4).map { "http://origin.test/\($0)" }
            for url in urls { _ = try await bench.get(url: url) }
            bench.clock.advance(20)
            bench.origin.answers { _ in
                await door.pass()
                return ScriptedResponse(304)
            }
            for url in urls { _ = try await bench.get(url: url) }
            await door.arrivals(2)
            #expect(bench.pipeline.backgroundStatistics.running == 2)
            #expect(bench.pipeline.backgroundStatistics.refused == 2)
            door.open()
        }
    }
}
