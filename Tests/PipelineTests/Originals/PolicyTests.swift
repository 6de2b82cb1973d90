@testable import HTTPCaching
@testable import PipelineFetching
import Synchronization
import Testing
import Variants

@testable import Pipeline

private let unreachable: ScriptedOrigin.Script = { request throws(FetchError) in
    throw FetchError(.unreachable, request.url, "nobody there")
}

@Sendable private func tagged(_ request: FetchRequest) -> ScriptedResponse {
    request.fields.first("if-none-match") == nil
        ? ScriptedResponse(200, "Cache-Control: max-age=10", "ETag: \"a\"", body: "b")
        : ScriptedResponse(304, "ETag: \"a\"")
}

struct PolicyTests {
    @Test func `cacheElseLoad takes what is stored at any age, and asks where nothing is`() async throws {
        try await withCache(origin: tagged) { bench in
            #expect(try await bench.get { $0.policy = .cacheElseLoad }.handling.forward == .uriMiss)
            bench.clock.advance(3600)
            let response = try await bench.get { $0.policy = .cacheElseLoad }
            #expect(response.handling.isHit && response.handling.timeToLive == .seconds(-3590) && bench.count == 1)
        }
    }

    @Test func `cacheElseLoad asks again where an error is stored that is stale`() async throws {
        try await withCache(origin: { _ in ScriptedResponse(404, "Cache-Control: max-age=10", body: "b") }) { bench in
            for seconds in [0.0, 5, 60] {
                bench.clock.advance(seconds)
                let response = try await bench.get { $0.policy = .cacheElseLoad }
                #expect(response.status == 404)
            }
            #expect(bench.count == 2)
        }
    }

    @Test func `cacheOnly contacts no origin`() async throws {
        try await withCache(origin: tagged) { bench in
            #expect(await bench.refusal { $0.policy = .cacheOnly }?.code == .notCached)
            _ = try await bench.get()
            bench.clock.advance(3600)
            #expect(try await bench.get { $0.policy = .cacheOnly }.handling.isHit)
            #expect(bench.count == 1)
        }
    }

    @Test func `a record without its body is not stored as far as the response itself goes`() async throws {
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
            $0.memory.originals = 10_000
            $0.disk.originals = 1_000
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=600", "ETag: \"a\"").picture("meadow-small.jpg")
        } _: { bench in
            let first = try await bench.get()
            #expect(first.body.count > 10_000)
            // A body that waits for the disk still answers.
            await bench.pipeline.drain()
            #expect(await bench.refusal { $0.policy = .cacheOnly }?.code == .notCached)
            #expect(await bench.imageRefusal { $0.policy = .cacheOnly }?.code == .notCached)
            let again = try await bench.get()
            #expect(again.handling.forward == .miss && bench.sent("if-none-match") == nil && bench.count == 2)
        }
    }

    @Test func `reload asks without validators though a fresh response is stored, and stores the answer`() async throws
    {
        try await withCache(origin: tagged) { bench in
            _ = try await bench.get()
            bench.clock.advance(5)
            let response = try await bench.get { $0.policy = .reload }
            #expect(bench.sent("if-none-match") == nil && bench.count == 2)
            #expect(response.handling.forward == .request && response.handling.isStored && response.age == nil)
            #expect(try await bench.get().age == .seconds(0))
            bench.origin.answers(unreachable)
            #expect(await bench.refusal { $0.policy = .reload }?.code == .fetchFailed)
        }
    }

    @Test func `revalidate asks with validators though a fresh response is stored`() async throws {
        try await withCache(origin: tagged) { bench in
            _ = try await bench.get()
            let response = try await bench.get { $0.policy = .revalidate }
            #expect(bench.sent("if-none-match") == "\"a\"" && response.handling.forward == .request)
            #expect(response.handling.forwardStatus == 304)
        }
    }

    @Test func `pictures obey the same policies, and an absence never stands in for one`() async throws {
        try await withCache { _ in
            ScriptedResponse(404, "Cache-Control: max-age=10")
        } _: { bench in
            #expect(await bench.imageRefusal()?.code == .notFound)
            bench.clock.advance(20)
            #expect(await bench.imageRefusal { $0.policy = .cacheOnly }?.code == .notCached)
            bench.origin.answers { _ in ScriptedResponse(200, "Cache-Control: max-age=10").picture() }
            #expect(try await bench.image { $0.policy = .cacheElseLoad }.outcome == .rendered)
            bench.clock.advance(20)
            let stale = try await bench.image { $0.policy = .cacheOnly }
            #expect(stale.isStale && stale.outcome == .memory && bench.count == 2)
        }
    }

    @Test(arguments: [true, false]) func `a client's directives act only where they are honoured`(isHonored: Bool)
        async throws
    {
        try await withCache(origin: tagged) { bench in
            let honored: (inout OriginalRequest) -> Void = { $0.honorsDirectives = isHonored }
            if isHonored {
                #expect(await bench.refusal("Cache-Control: only-if-cached", change: honored)?.code == .notCached)
            } else {
                #expect(try await bench.get("Cache-Control: only-if-cached", change: honored).status == 200)
            }
            _ = try await bench.get()
            bench.clock.advance(5)
            for directive in ["no-cache", "max-age=3", "min-fresh=8"] {
                let before = bench.count
                let response = try await bench.get("Cache-Control: \(directive)", change: honored)
                #expect(response.handling.forward == (isHonored ? .request : nil), "\(directive)")
                #expect(bench.count == before + (isHonored ? 1 : 0))
                bench.clock.advance(isHonored ? 5 : 0)
            }
            #expect(try await bench.get("Pragma: no-cache", change: honored).handling.isHit == !isHonored)
            bench.clock.advance(20)
            let response = try await bench.get("Cache-Control: max-stale", change: honored)
            #expect(response.handling.isHit == isHonored)
        }
    }

    @Test func `a source ID stands for the URL, in storing and in purging`() async throws {
        try await withCache { request in
            request.fields.first("if-none-match") == nil
                ? ScriptedResponse(200, "Cache-Control: max-age=10", "ETag: \"a\"", body: "b") : ScriptedResponse(304)
        } _: { bench in
            let shared: (inout OriginalRequest) -> Void = { $0.sourceID = "picture-1" }
            _ = try await bench.get(url: "http://one.test/x", change: shared)
            #expect(try await bench.get(url: "http://two.test/y", change: shared).handling.isHit)
            #expect(try await bench.get(url: "http://two.test/y").handling.forward == .uriMiss)
            bench.clock.advance(20)
            let validated = try await bench.get(url: "http://two.test/y", change: shared)
            #expect(validated.handling.forwardStatus == 304)
            _ = try await bench.pipeline.purge(.source(.url("http://any.test/"), sourceID: "picture-1"))
            let purged = try await bench.get(url: "http://one.test/x", change: shared)
            #expect(purged.handling.forward == .uriMiss)
        }
    }
}

struct StoringHookTests {
    @Test func `a veto keeps original and variant from being stored, and the answer comes all the same`() async throws {
        try await withCache {
            $0.willStore = { _ in false }
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10").picture()
        } _: { bench in
            for _ in 0..<2 { #expect(try await bench.image().outcome == .rendered) }
            let response = try await bench.get()
            #expect(response.handling.detail == "vetoed" && !response.handling.isStored && bench.count == 3)
            #expect(bench.pipeline.memoryStatistics.variants.entries == 0)
        }
    }

    @Test func `amendments are what is stored, the first answer is the origin's own`() async throws {
        try await withCache {
            $0.willStore = { candidate in
                candidate.lifetime = .seconds(100)
                candidate.response.fields.removeAll { $0.name == "Set-Cookie" }
                return true
            }
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: no-cache, max-age=10", "Set-Cookie: a=1", body: "b")
        } _: { bench in
            // no-cache is not a matter of lifetime: it stays.
            let first = try await bench.get()
            #expect(first.values("set-cookie") == ["a=1"])
            bench.origin.answers { _ in ScriptedResponse(200, "Cache-Control: max-age=10", "Set-Cookie: a=1", body: "c")
            }
            #expect(try await bench.get().text == "c")
            bench.clock.advance(90)
            let hit = try await bench.get()
            #expect(hit.handling.isHit && hit.handling.timeToLive == .seconds(10) && hit.values("set-cookie").isEmpty)
        }
    }

    @Test func `it is asked once for each response stored and each 304, and not for what may not be stored`()
        async throws
    {
        let seen = Mutex<[Bool]>([])
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
            $0.willStore = { candidate in
                seen.withLock { $0.append(candidate.isFreshened) }
                candidate.lifetime = .seconds(10)
                return true
            }
        } origin: {
            tagged($0)
        } _: { bench in
            _ = try await bench.get()
            bench.clock.advance(5)
            let other = try await bench.another()
            let hit = try await other.original(for: bench.request([]))
            #expect(hit.handling.timeToLive == .seconds(5) && hit.handling.detail == "disk")
            await other.shutdown()
            bench.clock.advance(10)
            _ = try await bench.get()
            _ = try await bench.get()
            _ = try await bench.get("Cache-Control: no-store") { $0.policy = .reload }
            #expect(seen.withLock { $0 } == [false, true])
        }
    }
}

struct RememberedFailureTests {
    @Test func `an unreachable origin is left alone after enough tries, for as long as configured`() async throws {
        try await withCache {
            $0.caching.errorMaxAge = .seconds(30)
            $0.caching.errorAttempts = 2
        } origin: { request throws(FetchError) in
            try await unreachable(request)
        } _: { bench in
            for count in [1, 2, 2, 2] {
                #expect(await bench.refusal()?.code == .fetchFailed)
                #expect(bench.count == count)
            }
            #expect(await bench.imageRefusal()?.code == .fetchFailed)
            #expect(await bench.refusal { $0.policy = .reload }?.code == .fetchFailed)
            #expect(bench.count == 3)
            bench.clock.advance(31)
            bench.origin.answers { _ in ScriptedResponse(200, "Cache-Control: no-store", body: "b") }
            let response = try await bench.get()
            #expect(response.text == "b" && bench.count == 4)
            bench.origin.answers(unreachable)
            // A success in between restarts the count.
            for count in [5, 6, 6] {
                #expect(await bench.refusal()?.code == .fetchFailed)
                #expect(bench.count == count)
            }
        }
    }

    @Test func `errors without freshness are remembered too, those with their own keep it`() async throws {
        try await withCache {
            $0.caching.errorMaxAge = .seconds(30)
        } origin: { request in
            request.url.name == "a"
                ? ScriptedResponse(500, body: "down") : ScriptedResponse(500, "Cache-Control: max-age=5", body: "busy")
        } _: { bench in
            _ = try await bench.get()
            let again = try await bench.get()
            #expect(again.status == 500 && again.handling.isHit && again.handling.timeToLive == .seconds(30))
            #expect(await bench.imageRefusal()?.code == .fetchFailed)
            #expect(bench.count == 1)
            bench.clock.advance(31)
            _ = try await bench.get()
            #expect(bench.count == 2)
            let url = "http://origin.test/b"
            _ = try await bench.get(url: url)
            #expect(try await bench.get(url: url).handling.timeToLive == .seconds(5))
        }
    }

    @Test func `a refusal is remembered for those who asked alike, not for everybody`() async throws {
        try await withCache {
            $0.caching.errorMaxAge = .seconds(30)
        } origin: { request in
            request.fields.first("authorization") == nil
                ? ScriptedResponse(401) : ScriptedResponse(200, "Cache-Control: public").picture()
        } _: { bench in
            for _ in 0..<2 { #expect(await bench.imageRefusal()?.code == .fetchFailed) }
            #expect(bench.count == 1)
            let mine = try await bench.image { $0.fields = [HeaderField("Authorization", "Basic eA==")] }
            #expect(mine.outcome == .rendered && bench.count == 2)
        }
    }

    @Test func `what may not be stored is remembered for pictures only`() async throws {
        try await withCache {
            $0.caching.errorMaxAge = .seconds(30)
        } origin: { _ in
            ScriptedResponse(404, "Cache-Control: no-store")
        } _: { bench in
            for _ in 0..<2 { #expect(await bench.imageRefusal()?.code == .notFound) }
            #expect(bench.count == 1)
            for _ in 0..<2 { _ = try await bench.get() }
            #expect(bench.count == 3)
        }
    }

    @Test func `a remembered failure does not hide the stale picture`() async throws {
        try await withCache {
            $0.caching.errorMaxAge = .seconds(30)
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10", "ETag: \"a\"").picture()
        } _: { bench in
            _ = try await bench.image()
            bench.clock.advance(20)
            bench.origin.answers(unreachable)
            for _ in 0..<3 { #expect(try await bench.image().isStale) }
            #expect(bench.count == 2)
        }
    }

    @Test func `nothing is remembered by default`() async throws {
        try await withCache { request throws(FetchError) in
            try await unreachable(request)
        } _: { bench in
            for count in 1...3 {
                #expect(await bench.refusal()?.code == .fetchFailed)
                #expect(bench.count == count)
            }
            bench.origin.answers { _ in ScriptedResponse(200) }
            _ = try await bench.get()
        }
    }

    @Test func `the memory of failures is bounded and forgets under a clock set back`() {
        let memory = FailureMemory(maxAge: .seconds(10), attempts: 1, capacity: 3)
        let error = PipelineError(.fetchFailed, "x")
        for number in 0..<5 { _ = memory.note("\(number)", error, .noResponse, now: Double(100 + number)) }
        #expect(memory.remembered(["1"], now: 105) == nil && memory.remembered(["2"], now: 105) != nil)
        #expect(memory.remembered(["4"], now: 114) == nil && memory.remembered(["4"], now: 103) == nil)
    }
}
