@testable import HTTPCaching
import TestSupport
import Testing

@testable import Pipeline

private let target = "http://other.test/b"

struct RedirectedOriginalsTests {
    /// The time for which a redirect's target, with a lifetime of an hour, is reused; nil: the source is asked each
    /// time.
    @Test(
        arguments: [
            (302, "X: 0", nil), (303, "X: 0", nil), (307, "X: 0", nil), (301, "X: 0", 3600), (308, "X: 0", 3600),
            (302, "Cache-Control: max-age=60", 60), (301, "Cache-Control: max-age=60", 60),
            (307, "Cache-Control: max-age=7200", 3600), (301, "Cache-Control: no-cache", nil),
            (302, "Cache-Control: max-age=60, no-cache", nil),
        ] as [(Int, String, Int?)])
    func `it lives no longer than the redirects on its way`(status: Int, field: String, seconds: Int?) async throws {
        try await withCache { request in
            request.fields.first("if-none-match") == nil
                ? ScriptedResponse(200, "Cache-Control: max-age=3600", "ETag: \"a\"", body: "b")
                    .after(ScriptedResponse(status, field, "Location: \(target)"), at: target)
                : ScriptedResponse(304, "ETag: \"a\"").after(
                    ScriptedResponse(status, field, "Location: \(target)"), at: target)
        } _: { bench in
            let first = try await bench.get()
            #expect(first.text == "b" && first.status == 200 && first.handling.isStored)
            for _ in 0..<2 {
                if let seconds {
                    bench.clock.advance(Double(seconds) - 1)
                    #expect(try await bench.get().handling.isHit)
                    bench.clock.advance(1)
                }
                let again = try await bench.get()
                #expect(again.handling.forward == .stale && again.handling.forwardStatus == 304 && again.text == "b")
            }
        }
    }

    @Test func `the shortest of several redirects counts, less what it has aged`() {
        let now = 1_800_000_000.0
        let date = HeaderField("Date", HTTPDate.text(unixSeconds: Int(now)))
        let redirect = { (status: Int, control: String, age: String) in
            StoredResponse(
                status: status, fields: [date, HeaderField("Cache-Control", control), HeaderField("Age", age)],
                requestTime: now, responseTime: now)
        }
        let response = StoredResponse(
            status: 200, fields: [date, HeaderField("Age", "5")], requestTime: now, responseTime: now)
        let hops = [redirect(302, "max-age=100", "0"), redirect(302, "max-age=50", "20"), redirect(301, "x", "0")]
        #expect(Redirects.lifetimeLimit(of: response, after: hops) == 35)
        #expect(Redirects.lifetimeLimit(of: response, after: [hops[2]]) == nil)
        #expect(Redirects.lifetimeLimit(of: response, after: []) == nil)
    }

    @Test(arguments: ["Cache-Control: no-store", "Cache-Control: private", "Vary: *"])
    func `it is not stored where one of them may not be`(field: String) async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=3600", body: "b").after(
                ScriptedResponse(301, field), at: target)
        } _: { bench in
            for _ in 0..<2 {
                let response = try await bench.get()
                #expect(!response.handling.isStored)
            }
            #expect(bench.count == 2)
        }
    }

    @Test func `it is selected by what any of them varies on`() async throws {
        try await withCache { request in
            ScriptedResponse(200, "Cache-Control: max-age=3600", body: request.fields.first("accept") ?? "")
                .after(ScriptedResponse(301, "Vary: Accept"), at: target)
        } _: { bench in
            for kind in ["a", "b", "a"] {
                let response = try await bench.get("Accept: \(kind)")
                #expect(response.text == kind)
            }
            #expect(bench.count == 2)
        }
    }

    @Test func `validators speak of the URL that was reached: elsewhere a 304 is not believed`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "ETag: \"1\"", body: "b").after(ScriptedResponse(302), at: target)
        } _: { bench in
            _ = try await bench.get()
            bench.origin.answers { request in
                request.fields.first("if-none-match") == nil
                    ? ScriptedResponse(200, "ETag: \"1\"", body: "c").after(
                        ScriptedResponse(302), at: "http://other.test/c")
                    : ScriptedResponse(304, "ETag: \"1\"").after(ScriptedResponse(302), at: "http://other.test/c")
            }
            #expect(try await bench.get().text == "c")
            #expect(bench.count == 3)
        }
    }

    @Test func `staleness while revalidating ends with the redirects`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=3600, stale-while-revalidate=3600", "ETag: \"1\"", body: "b")
                .after(ScriptedResponse(302), at: target)
        } _: { bench in
            _ = try await bench.get()
            let again = try await bench.get()
            #expect(!again.handling.isHit && bench.count == 2)
        }
    }

    @Test func `over the network a redirect is followed, or answered as it is`() async throws {
        let bench = try PipelineBench { request in
            request.path == "/from"
                ? .response(302, ["Location": "/to", "Cache-Control": "max-age=600"])
                : .response(200, ["Cache-Control": "max-age=3600", "Content-Type": "image/png"], body: [1, 2])
        }
        let pipeline = try bench.pipeline()
        var request = OriginalRequest(url: bench.origin.url("/from"))
        for round in 0..<2 {
            let followed = try await pipeline.original(for: request)
            #expect(followed.status == 200 && followed.body == [1, 2] && followed.handling.isHit == (round == 1))
            #expect((.seconds(300) ... .seconds(600)).contains(followed.handling.timeToLive ?? .zero))
        }
        #expect(bench.origin.requests.count == 2)
        request.followsRedirects = false
        for round in 0..<2 {
            let redirect = try await pipeline.original(for: request)
            #expect(redirect.status == 302 && redirect.fields.first("location") == "/to")
            #expect(redirect.handling.isHit == (round == 1))
        }
        #expect(bench.origin.requests.count == 3)
        // The stored redirect does not answer who wants what it leads to.
        request.followsRedirects = true
        #expect(try await pipeline.original(for: request).status == 200)
        bench.origin.stop()
        await pipeline.shutdown()
    }
}
