@testable import HTTPCaching
import Testing

struct InvalidationTests {
    private static let target = Invalidation.Target(url: "http://a.test/1", origin: "http://a.test")

    /// References that begin with `/` are of the same origin, references with `http:` name their own.
    private static func resolved(_ reference: String) -> Invalidation.Target? {
        if reference.hasPrefix("/") { return .init(url: "http://a.test" + reference, origin: "http://a.test") }
        guard reference.hasPrefix("http://") else { return nil }
        return .init(url: reference, origin: String(reference.prefix { $0 != "?" }))
    }

    private func targets(_ method: String, _ status: Int, _ fields: [HeaderField] = []) -> [String] {
        Invalidation.targets(
            after: method, to: Self.target, status: status, fields: fields, resolving: Self.resolved
        ).map(\.url)
    }

    /// RFC 9111 §4.4, `Invalidation.targets`: An unsafe or unknown method invalidates its URL if it succeeds (2xx,
    /// 3xx).
    @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "get", "WHATEVER"])
    func `an unsafe or unknown method invalidates its URL (RFC 9111 §4.4)`(method: String) {
        #expect(targets(method, 200) == ["http://a.test/1"])
    }

    /// RFC 9110 §9.2.1, `Invalidation.isSafe`: GET, HEAD, OPTIONS and TRACE do not invalidate.
    @Test(arguments: ["GET", "HEAD", "OPTIONS", "TRACE"])
    func `a safe method invalidates nothing (RFC 9110 §9.2.1)`(method: String) {
        #expect(targets(method, 200, [HeaderField("Location", "/2")]).isEmpty)
    }

    /// RFC 9111 §4.4, `Invalidation.targets`: An error does not invalidate.
    @Test(arguments: [
        (199, 0), (200, 1), (204, 1), (301, 1), (303, 1), (399, 1), (400, 0), (404, 0), (500, 0), (599, 0),
    ])
    func `an error invalidates nothing (RFC 9111 §4.4)`(status: Int, count: Int) {
        #expect(targets("POST", status).count == count)
    }

    /// RFC 9111 §4.4, `Invalidation.targets`: The URLs in `Location` and `Content-Location` are also invalidated
    /// (optional).
    @Test func `what Location and Content-Location name is invalidated too (RFC 9111 §4.4)`() {
        let fields = [HeaderField("location", "/2"), HeaderField("Content-Location", "/3"), HeaderField("Link", "/4")]
        #expect(targets("PUT", 201, fields) == ["http://a.test/1", "http://a.test/2", "http://a.test/3"])
        #expect(targets("PUT", 201, [HeaderField("Location", "no reference")]) == ["http://a.test/1"])
        #expect(targets("PUT", 201, [HeaderField("Content-Location", "/1")]) == ["http://a.test/1"])
    }

    /// RFC 9111 §4.4, `Invalidation.targets`: URLs of other origins are not invalidated.
    @Test func `what they name of another origin is not (RFC 9111 §4.4)`() {
        let fields = [HeaderField("Location", "http://b.test"), HeaderField("Content-Location", "http://c.test")]
        #expect(targets("POST", 200, fields) == ["http://a.test/1"])
    }

    /// RFC 9110 §9.3.3, `Invalidation.answersLaterRequests`: A POST's 200 can be used for GET if it has explicit
    /// freshness and a single `Content-Location`, equal to its URL.
    @Test(
        arguments: [
            ("POST", 200, ["Cache-Control: max-age=60", "Content-Location: /1"], true),
            ("POST", 200, ["Cache-Control: s-maxage=60", "Content-Location: http://a.test/1"], false),
            ("POST", 200, ["Expires: Sat, 01 Jan 2050 00:00:00 GMT", "Content-Location: /1"], true),
            ("PUT", 200, ["Cache-Control: max-age=60", "Content-Location: /1"], false),
            ("POST", 201, ["Cache-Control: max-age=60", "Content-Location: /1"], false),
            ("POST", 200, ["Cache-Control: max-age=60"], false),
            ("POST", 200, ["Cache-Control: max-age=60", "Content-Location: /2"], false),
            ("POST", 200, ["Cache-Control: max-age=60", "Content-Location: /1", "Content-Location: /1"], false),
            ("POST", 200, ["Content-Location: /1"], false),
            ("POST", 200, ["Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT", "Content-Location: /1"], false),
        ] as [(String, Int, [String], Bool)])
    func `a POST's answer serves GET where it says that it is what its URL stands for (RFC 9110 §9.3.3)`(
        method: String, status: Int, lines: [String], isReused: Bool
    ) {
        let fields = lines.map { line in
            let parts = line.split(separator: ": ", maxSplits: 1)
            return HeaderField(String(parts[0]), String(parts[1]))
        }
        let response = StoredResponse(status: status, fields: fields, requestTime: 1e9, responseTime: 1e9)
        let answers = Invalidation.answersLaterRequests(
            response, to: method, at: Self.target, resolving: Self.resolved)
        #expect(answers == isReused)
    }
}
