@testable import PipelineFetching
import Testing
import Variants

@testable import Pipeline

private let old = "If-None-Match"

struct ConfirmationTests {
    @Test func `a 304 for a tag that nothing stored has is asked again without validators, once`() async throws {
        try await withCache { request in
            request.fields.first(old) == nil
                ? ScriptedResponse(200, "Cache-Control: max-age=10", "ETag: \"b\"", body: "new")
                : ScriptedResponse(304, "ETag: \"other\"")
        } _: { bench in
            bench.origin.answers { _ in ScriptedResponse(200, "Cache-Control: max-age=10", "ETag: \"a\"", body: "old") }
            _ = try await bench.get()
            bench.clock.advance(20)
            bench.origin.answers { request in
                request.fields.first(old) == nil
                    ? ScriptedResponse(200, "Cache-Control: max-age=10", "ETag: \"b\"", body: "new")
                    : ScriptedResponse(304, "ETag: \"other\"")
            }
            let response = try await bench.get()
            #expect(response.text == "new" && response.status == 200 && response.handling.isStored)
            #expect(bench.count == 3 && bench.sent(old) == nil)
            #expect(try await bench.get().text == "new")
            #expect(bench.count == 3)
        }
    }

    @Test func `a 304 out of nowhere is asked again, and is an error when it stays`() async throws {
        try await withCache { _ in
            ScriptedResponse(304, "ETag: \"a\"")
        } _: { bench in
            let error = await bench.refusal()
            #expect(error?.code == .fetchFailed && error?.message.contains("304") == true)
            #expect(bench.count == 2)
            #expect(await bench.imageRefusal()?.code == .fetchFailed)
            bench.origin.answers { _ in ScriptedResponse(200, "Cache-Control: max-age=10", body: "b") }
            let response = try await bench.get()
            #expect(response.text == "b")
        }
    }

    @Test func `a 304 without validators speaks of the one response it can speak of, not of one of several`()
        async throws
    {
        try await withCache { request in
            let kind = request.fields.first("accept") ?? ""
            return request.fields.first(old) == nil
                ? ScriptedResponse(200, "Cache-Control: max-age=10", "Vary: Accept", "ETag: \"\(kind)\"", body: kind)
                : ScriptedResponse(304)
        } _: { bench in
            _ = try await bench.get("Accept: a")
            bench.clock.advance(20)
            let one = try await bench.get("Accept: a")
            #expect(one.handling.forwardStatus == 304 && bench.count == 2)
            _ = try await bench.get("Accept: b") { $0.policy = .reload }
            bench.clock.advance(20)
            let several = try await bench.get("Accept: a")
            #expect(several.handling.forwardStatus == nil && several.text == "a" && bench.count == 5)
            #expect(bench.origin.requests[3].fields.first(old) == "\"a\", \"b\"" && bench.sent(old) == nil)
        }
    }

    @Test func `what a 304 omits stays, what it brings replaces, but for the length`() async throws {
        try await withCache { request in
            request.fields.first(old) == nil
                ? ScriptedResponse(
                    200, "Cache-Control: max-age=10", "ETag: \"a\"", "X-Kept: 1", "X-New: old", "Content-Length: 1",
                    "Connection: X-Hop", body: "b")
                : ScriptedResponse(304, "X-New: new", "Content-Length: 99", "Cache-Control: max-age=20", "ETag: \"a\"")
        } _: { bench in
            _ = try await bench.get()
            bench.clock.advance(15)
            for _ in 0..<2 {
                let response = try await bench.get()
                #expect(response.values("x-kept") == ["1"] && response.values("x-new") == ["new"])
                #expect(response.values("content-length") == ["1"] && response.text == "b")
            }
            #expect(bench.count == 2)
            bench.clock.advance(15)
            #expect(try await bench.get().handling.isHit)
        }
    }

    @Test func `a strong tag freshens every selection that has it`() async throws {
        try await withCache { request in
            request.fields.first(old) == nil
                ? ScriptedResponse(200, "Cache-Control: max-age=10", "Vary: Accept", "ETag: \"s\"", body: "s")
                : ScriptedResponse(304, "ETag: \"s\"")
        } _: { bench in
            for kind in ["a", "b"] { _ = try await bench.get("Accept: \(kind)") { $0.policy = .reload } }
            bench.clock.advance(20)
            _ = try await bench.get("Accept: a")
            #expect(bench.count == 3)
            #expect(try await bench.get("Accept: b").handling.isHit)
        }
    }

    @Test func `a 304 keeps the variants of a body that is gone`() async throws {
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
            // Too little for the body, not for its record.
            $0.disk.originals = 1_000
            $0.memory.originals = 20_000
        } origin: { request in
            request.fields.first(old) == nil
                ? ScriptedResponse(200, "Cache-Control: no-cache", "ETag: \"a\"").picture("meadow-small.jpg")
                : ScriptedResponse(304)
        } _: { bench in
            let first = try await bench.image()
            #expect(first.outcome == .rendered && first.record.length > 20_000)
            let second = try await bench.image()
            #expect(second.outcome == .memory && second.originalOutcome == .revalidated && bench.count == 2)
            // Another variant needs the body: asked for without validators.
            let third = try await bench.image("thumbnail:20")
            #expect(third.outcome == .rendered && bench.count == 4 && bench.sent(old) == nil)
            // A body that still waits for the disk can be read.
            await bench.pipeline.drain()
            // The response itself is not answered by halves.
            let whole = try await bench.get()
            #expect(whole.body.count == first.record.length && whole.handling.forward == .miss)
            #expect(bench.count == 5 && bench.sent(old) == nil)
            let other = try await bench.another()
            var request = ImageRequest(.url(CachingBench.url), recipe: try Recipe("thumbnail:40"))
            let stored = try await other.respond(to: request)
            #expect(stored.outcome == .disk && stored.originalOutcome == .revalidated)
            request.policy = .cacheOnly
            #expect(try await other.respond(to: request).outcome == .memory)
            await other.shutdown()
        }
    }

    @Test func `equal bytes under a new tag keep the variants, other bytes do not`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: no-cache", "ETag: \"a\"").picture()
        } _: { bench in
            let first = try await bench.image()
            bench.origin.answers { _ in ScriptedResponse(200, "Cache-Control: no-cache", "ETag: \"b\"").picture() }
            let second = try await bench.image()
            #expect(second.outcome == .memory && second.originalOutcome == .network && second.key == first.key)
            bench.origin.answers { _ in ScriptedResponse(200, "ETag: \"b\"").picture("meadow-small.jpg") }
            #expect(try await bench.image().key != first.key)
        }
    }

    @Test func `an answer that may not be stored takes the place of what was`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10", "ETag: \"a\"", body: "old")
        } _: { bench in
            _ = try await bench.get()
            bench.clock.advance(20)
            bench.origin.answers { _ in ScriptedResponse(200, "Cache-Control: no-store", body: "new") }
            #expect(try await bench.get().text == "new")
            // Were the old one still there, it would hide that the origin is gone.
            bench.origin.answers { request throws(FetchError) in throw FetchError(.unreachable, request.url, "gone") }
            #expect(await bench.refusal()?.code == .fetchFailed)
        }
    }

    @Test func `an answer that only the request's own fields forbid to store leaves what was`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10", "ETag: \"a\"", body: "old")
        } _: { bench in
            _ = try await bench.get()
            bench.clock.advance(20)
            let mine = try await bench.get("Authorization: Basic eA==")
            #expect(!mine.handling.isStored && mine.handling.detail == "authorization")
            bench.origin.answers { request throws(FetchError) in throw FetchError(.unreachable, request.url, "gone") }
            #expect(try await bench.get().text == "old")
        }
    }
}
