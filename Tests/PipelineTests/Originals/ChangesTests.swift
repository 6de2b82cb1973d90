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
            Answer(200, Self.lasting, body: $0.method)
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
                ? Answer(200, Self.lasting, "Cache-Control: stale-if-error=3600", body: "old")
                : Answer(status, body: "no")
        } _: { bench in
            _ = try await bench.get()
            let failed = try await change(bench, "PUT")
            #expect(failed.status == status && failed.text == "no")
            #expect(try await bench.get().handling.isHit)
        }
    }

    @Test func `an origin that does not answer a change is an error, and what is stored stays`() async throws {
        try await withCache { request throws(FetchError) in
            if request.method == "GET" { return Answer(200, Self.lasting, body: "old") }
            throw FetchError(.transport, request.url, "the connection broke off")
        } _: { bench in
            _ = try await bench.get()
            await #expect(throws: PipelineError.self) { try await change(bench, "POST") }
            #expect(bench.count == 2)
            #expect(try await bench.get().handling.isHit)
        }
    }

    @Test func `what Location and Content-Location name of the same origin is removed, and nothing else`() async throws
    {
        let origin = "http://origin.test"
        try await withCache { request in
            request.method == "GET"
                ? Answer(200, Self.lasting, body: request.url.name)
                : Answer(201, "Location: b", "Content-Location: \(origin)/c", "Location: http://other.test/d")
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
            Answer(200, Self.lasting, "Content-Location: /a", body: $0.method)
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
            Answer(200, Self.lasting, body: $0.method)
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

    @Test func `a type that is not accepted is an error, and the change counts all the same`() async throws {
        try await withCache {
            $0.acceptedTypes = ["image/*"]
        } origin: {
            $0.method == "GET"
                ? Answer(200, Self.lasting, "Content-Type: image/png", body: "a")
                : Answer(200, "Content-Type: application/json", body: "{}")
        } _: { bench in
            _ = try await bench.get()
            let error = await #expect(throws: PipelineError.self) { try await change(bench, "PUT") }
            #expect(error?.code == .notAnImage)
            #expect(try await bench.get().handling.isHit == false)
        }
    }
}
