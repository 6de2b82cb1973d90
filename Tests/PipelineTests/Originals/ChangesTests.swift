@testable import PipelineFetching
import Synchronization
import Testing
import Variants

@testable import Pipeline

/// Requests that may change things, through the caches.
struct ChangesTests {
    private static let lasting = "Cache-Control: max-age=3600"

    /// Sends a request with another method than GET.
    private func change(
        _ bench: CachingBench, _ method: String, _ lines: String..., url: String = CachingBench.url,
        body: String = "new"
    ) async throws -> OriginalResponse {
        try await bench.pipeline.original(
            for: bench.request(lines, url: url) {
                $0.method = method
                $0.body = Array(body.utf8)
            })
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"])
    func `a change that succeeds removes what is stored`(method: String) async throws {
        try await withCache {
            ScriptedResponse(200, Self.lasting, body: $0.method)
        } _: { bench in
            #expect(try await bench.get().text == "GET")
            #expect(try await bench.get().handling.isHit)
            let changed = try await change(bench, method, "Authorization: Basic x", "If-Match: \"a\"")
            #expect(changed.text == method && changed.age == nil)
            #expect(changed.handling.fieldValue() == "pipeline; fwd=method; detail=method")
            let sent = try #require(bench.origin.requests.last)
            #expect(sent.method == method && sent.body == Array("new".utf8))
            #expect(bench.sent("authorization") == "Basic x" && bench.sent("if-match") == "\"a\"")
            let again = try await bench.get()
            #expect(again.handling.forward == .uriMiss && bench.count == 3)
        }
    }

    @Test(arguments: [400, 404, 412, 500, 503])
    func `a change that fails leaves what is stored, and nothing stored stands in for its answer`(
        status: Int
    ) async throws {
        try await withCache { request in
            request.method == "GET"
                ? ScriptedResponse(200, Self.lasting, "Cache-Control: stale-if-error=3600", body: "old")
                : ScriptedResponse(status, body: "no")
        } _: { bench in
            _ = try await bench.get()
            let failed = try await change(bench, "PUT")
            #expect(failed.status == status && failed.text == "no")
            #expect(try await bench.get().handling.isHit)
        }
    }

    @Test(arguments: [
        (FetchError.Code.transport, false), (.timeout, false), (.truncated, false), (.tooLarge, false),
        (.protocolViolation, false), (.stalled, false), (.unreachable, true), (.refusedAddress, true),
        (.connectTimeout, true), (.circuitOpen, true),
    ])
    func `a change whose answer is lost may have been made; one that was never sent was not`(
        code: FetchError.Code, isKept: Bool
    ) async throws {
        try await withCache { request throws(FetchError) in
            if request.method == "GET" { return ScriptedResponse(200, Self.lasting, body: "old") }
            throw FetchError(code, request.url, "so")
        } _: { bench in
            _ = try await bench.get()
            await #expect(throws: PipelineError.self) { try await change(bench, "POST") }
            #expect(bench.count == 2)
            #expect(try await bench.get().handling.isHit == isKept)
        }
    }

    @Test func `a safe method whose answer is lost has changed nothing`() async throws {
        try await withCache { request throws(FetchError) in
            if request.method == "GET" { return ScriptedResponse(200, Self.lasting, body: "old") }
            throw FetchError(.timeout, request.url, "so")
        } _: { bench in
            _ = try await bench.get()
            await #expect(throws: PipelineError.self) { try await change(bench, "OPTIONS", body: "") }
            #expect(try await bench.get().handling.isHit)
        }
    }

    @Test func `a change runs to completion after its client has left`() async throws {
        let door = Door()
        try await withCache { request in
            if request.method != "GET" { await door.pass() }
            return ScriptedResponse(200, Self.lasting, body: request.method)
        } _: { bench in
            _ = try await bench.get()
            let leaving = Task { try await change(bench, "PUT") }
            await door.arrivals(1)
            leaving.cancel()
            await #expect(throws: PipelineError.self) { try await leaving.value }
            door.open()
            await bench.pipeline.drain()
            #expect(try await bench.get().handling.forward == .uriMiss)
        }
    }

    @Test func `who asks after a change does not join who asked before it`() async throws {
        let door = Door()
        let isFirst = Atomic(true)
        try await withCache { request in
            guard request.method == "GET" else { return ScriptedResponse(204) }
            guard isFirst.exchange(false, ordering: .relaxed) else {
                return ScriptedResponse(200, Self.lasting, body: "new")
            }
            await door.pass()
            return ScriptedResponse(200, Self.lasting, body: "old")
        } _: { bench in
            async let early = bench.get()
            await door.arrivals(1)
            _ = try await change(bench, "PUT")
            let late = try await bench.get()
            #expect(late.text == "new" && !late.handling.isCollapsed)
            door.open()
            #expect(try await early.text == "old")
            let after = try await bench.get()
            #expect(after.text == "new" && after.handling.isHit)
        }
    }

    @Test func `the answer to a POST that a later change has overtaken is not stored`() async throws {
        let door = Door()
        try await withCache { request in
            if request.method == "POST" { await door.pass() }
            return ScriptedResponse(200, Self.lasting, "Content-Location: /a", body: request.method)
        } _: { bench in
            async let posted = change(bench, "POST")
            await door.arrivals(1)
            _ = try await change(bench, "PUT")
            door.open()
            #expect(try await posted.handling.isStored == false)
            #expect(try await bench.get().text == "GET")
        }
    }

    @Test func `a change makes remembered failures void`() async throws {
        let isThere = Atomic(false)
        try await withCache {
            $0.caching.errorMaxAge = .seconds(100)
        } origin: { request in
            if request.method == "PUT" { isThere.store(true, ordering: .relaxed) }
            return isThere.load(ordering: .relaxed) ? ScriptedResponse(200).picture() : ScriptedResponse(404)
        } _: { bench in
            for _ in 0..<2 { #expect(await bench.imageRefusal()?.code == .notFound) }
            #expect(bench.count == 1)
            _ = try await change(bench, "PUT")
            #expect(try await bench.image().width == 40)
        }
    }

    @Test func `what Location and Content-Location name of the same origin is removed, and nothing else`() async throws
    {
        let origin = "http://origin.test"
        try await withCache { request in
            request.method == "GET"
                ? ScriptedResponse(200, Self.lasting, body: request.url.name)
                : ScriptedResponse(201, "Location: b", "Content-Location: \(origin)/c", "Location: http://other.test/d")
        } _: { bench in
            let urls = ["/b", "/c", "/e"].map { origin + $0 } + ["http://other.test/d"]
            for url in urls { _ = try await bench.get(url: url) }
            _ = try await change(bench, "POST")
            var hits: [Bool] = []
            for url in urls { hits.append(try await bench.get(url: url).handling.isHit) }
            #expect(hits == [false, false, true, true])
        }
    }

    @Test func `the answer to a POST that is what its URL stands for serves the next GET`() async throws {
        try await withCache {
            ScriptedResponse(200, Self.lasting, "Content-Location: /a", body: $0.method)
        } _: { bench in
            _ = try await bench.get()
            let posted = try await change(bench, "POST")
            #expect(posted.text == "POST" && posted.handling.isStored)
            let again = try await bench.get()
            #expect(again.handling.isHit && again.text == "POST" && bench.count == 2)
        }
    }

    @Test func `another pipeline on the folder does not answer from its memory after a change`() async throws {
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
        } origin: {
            ScriptedResponse(200, Self.lasting, body: $0.method)
        } _: { bench in
            _ = try await bench.get()
            let other = try await bench.another()
            #expect(try await other.original(for: bench.request([])).handling.detail == "disk")
            #expect(try await other.original(for: bench.request([])).handling.detail == "memory")
            _ = try await change(bench, "DELETE", body: "")
            #expect(try await other.original(for: bench.request([])).handling.forward == .uriMiss)
            await other.shutdown()
        }
    }

    @Test func `the answer to a change comes as it is, whatever its type`() async throws {
        try await withCache {
            $0.acceptedTypes = ["image/*"]
        } origin: {
            $0.method == "GET"
                ? ScriptedResponse(200, Self.lasting, "Content-Type: image/png", body: "a")
                : ScriptedResponse(409, "Content-Type: application/json", body: "{}")
        } _: { bench in
            _ = try await bench.get()
            let changed = try await change(bench, "PUT")
            #expect(changed.status == 409 && changed.text == "{}")
            #expect(try await bench.get().handling.isHit)
        }
    }
}
