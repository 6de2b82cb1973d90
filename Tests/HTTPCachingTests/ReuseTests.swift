import HTTPCaching
import Testing

struct ReuseTests {
    private let tagged: KeyValuePairs = ["Cache-Control": "max-age=60", "ETag": "\"a\""]

    private func decision(
        _ control: String, age: Double, configuration: CachingConfiguration = caching()
    ) -> ReuseDecision {
        let response = stored(["Cache-Control": control, "ETag": "\"a\""])
        return Reuse.decision(
            stored: response, now: epoch + age, policy: .protocol, configuration: configuration)
    }

    private func servesStale(
        _ control: String, after failure: OriginFailure = .noResponse, staleness: Double = 60, status: Int = 200,
        request: String? = nil, configuration: CachingConfiguration = caching()
    ) -> Bool {
        let response = stored(["Cache-Control": "max-age=60, \(control)"], status: status)
        let directives = request.map { RequestDirectives(fields: [HeaderField("Cache-Control", $0)]) }
        return Reuse.mayServeStale(
            response, after: failure, now: epoch + 60 + staleness, configuration: configuration, directives: directives)
    }

    /// Project rule, `Reuse.decision`: The `protocol` policy follows RFC 9111; other policies override the origin.
    @Test(arguments: [
        (CachePolicy.protocol, 10.0, ReuseDecision.fresh), (.protocol, 100, .mustValidate),
        (.cacheElseLoad, 10, .fresh), (.cacheElseLoad, 100, .stale), (.cacheOnly, 100, .stale),
        (.reload, 10, .mustFetch), (.revalidate, 10, .mustValidate), (.revalidate, 100, .mustValidate),
    ])
    func `each policy has its decision`(policy: CachePolicy, age: Double, expected: ReuseDecision) {
        #expect(Reuse.decision(stored: stored(tagged), now: epoch + age, policy: policy) == expected)
    }

    /// Project rule, `Reuse.decision`: `cacheElseLoad` fetches a stale error (4xx, 5xx) again.
    @Test(arguments: [(200, ReuseDecision.stale), (301, .stale), (404, .mustValidate), (503, .mustValidate)])
    func `cacheElseLoad keeps no error beyond its freshness`(status: Int, whenStale: ReuseDecision) {
        let response = stored(tagged, status: status)
        #expect(Reuse.decision(stored: response, now: epoch + 10, policy: .cacheElseLoad) == .fresh)
        #expect(Reuse.decision(stored: response, now: epoch + 100, policy: .cacheElseLoad) == whenStale)
        #expect(Reuse.decision(stored: response, now: epoch + 100, policy: .cacheOnly) == .stale)
    }

    /// Project rule, `Reuse.decision`: After a soft purge, a fresh response is treated as if it were stale and within
    /// `stale-while-revalidate`.
    @Test(
        arguments: [
            ("max-age=60", 10.0, nil, ReuseDecision.staleWhileRevalidate), ("max-age=60", 100, nil, .mustValidate),
            ("max-age=60, stale-while-revalidate=60", 100, nil, .staleWhileRevalidate),
            ("max-age=60, must-revalidate", 10, nil, .mustValidate), ("max-age=60, no-cache", 10, nil, .mustValidate),
            ("s-maxage=60", 10, nil, .mustValidate), ("max-age=60", 10, "max-stale", .staleWhileRevalidate),
            ("max-age=60", 10, "max-age=30", .mustValidate), ("max-age=60", 10, "min-fresh=1", .mustValidate),
        ] as [(String, Double, String?, ReuseDecision)])
    func `what a soft purge has made stale is used while it is validated, unless that is forbidden`(
        control: String, age: Double, asked: String?, expected: ReuseDecision
    ) {
        var response = stored(["Cache-Control": control, "ETag": "\"a\""])
        response.isSoftPurged = true
        let directives = asked.map { RequestDirectives(fields: [HeaderField("Cache-Control", $0)]) }
        #expect(
            Reuse.decision(stored: response, now: epoch + age, policy: .protocol, directives: directives) == expected)
        #expect(Reuse.decision(stored: response, now: epoch + age, policy: .cacheElseLoad) == .stale)
        #expect(Freshness.remaining(of: response, now: epoch + age) <= 0)
        let confirmed = Validation.freshenedResponse(
            response, by: [], requestTime: epoch + age, responseTime: epoch + age)
        #expect(!confirmed.isSoftPurged)
    }

    /// Project rule, `Reuse.decision`: With every policy, a response that a missed purge may cover is validated before
    /// use, unless the origin fails.
    @Test func `a response in doubt answers nothing until it is validated, and stands in for an origin that fails`() {
        var response = stored(tagged)
        response.isInDoubt = true
        for (policy, expected) in [
            (CachePolicy.protocol, ReuseDecision.mustValidate), (.cacheElseLoad, .mustValidate),
            (.cacheOnly, .gatewayTimeout), (.revalidate, .mustValidate), (.reload, .mustFetch),
        ] {
            #expect(Reuse.decision(stored: response, now: epoch, policy: policy) == expected)
        }
        for asked in ["max-stale", "only-if-cached"] {
            let directives = RequestDirectives(fields: [HeaderField("Cache-Control", asked)])
            let decision = Reuse.decision(stored: response, now: epoch, policy: .protocol, directives: directives)
            #expect(decision == (asked == "max-stale" ? .mustValidate : .gatewayTimeout))
        }
        #expect(Freshness.remaining(of: response, now: epoch) <= 0)
        #expect(Reuse.mayServeStale(response, after: .noResponse, now: epoch))
        #expect(!Validation.freshenedResponse(response, by: [], requestTime: epoch, responseTime: epoch).isInDoubt)
    }

    /// RFC 9111 §4.3.1, `Reuse.decision`: A stale response without a validator is fetched again.
    @Test func `a stale response without validator is fetched again (RFC 9111 §4.3.1)`() {
        let response = stored(["Cache-Control": "max-age=60"])
        #expect(Reuse.decision(stored: response, now: epoch + 61, policy: .protocol) == .mustFetch)
        #expect(Reuse.decision(stored: response, now: epoch, policy: .revalidate) == .mustFetch)
    }

    /// RFC 9111 §5.2.2.4, `Reuse.decision`: `no-cache` requires validation of a fresh response.
    @Test func `no-cache wants validation of what is fresh (RFC 9111 §5.2.2.4)`() {
        #expect(decision("max-age=60, no-cache", age: 1) == .mustValidate)
        #expect(decision("max-age=60, No-Cache", age: 1) == .mustValidate)
        #expect(decision("no-cache", age: 0) == .mustValidate)
    }

    /// RFC 9111 §5.2.2.4, `Reuse.decision`: Choice: `no-cache` with field names permits reuse.
    @Test func `no-cache with names lets the rest be reused (RFC 9111 §5.2.2.4)`() {
        #expect(decision("max-age=60, no-cache=\"a\"", age: 1) == .fresh)
    }

    /// RFC 9111 §5.2.2.4, `Reuse.fields`: The fields that `no-cache` names are omitted until validation.
    @Test func `fields that no-cache names are left out until validated (RFC 9111 §5.2.2.4)`() {
        let response = stored(["Cache-Control": "max-age=60, no-cache=\"a, b\"", "A": "1", "b": "2", "C": "3"])
        let names = Reuse.fields(of: response, wasValidated: false).map(\.name)
        #expect(names == ["Cache-Control", "C", "Date"])
        let all = Reuse.fields(of: response, wasValidated: true).map(\.name)
        #expect(all == ["Cache-Control", "A", "b", "C", "Date"])
    }

    /// RFC 9111 §4, `Reuse.fields`: `Age` is computed, not forwarded.
    @Test func `the received Age is not passed on (RFC 9111 §4)`() {
        let fields = Reuse.fields(of: stored(["Age": "5", "X": "1", "age": "6"]), wasValidated: true)
        #expect(fields.map(\.name) == ["X", "Date"])
    }

    /// RFC 9111 §5.2.2.2, `Reuse.decision`: `must-revalidate` requires validation of a stale response.
    @Test func `must-revalidate lets fresh responses be reused, stale ones not (RFC 9111 §5.2.2.2)`() {
        #expect(decision("max-age=60, must-revalidate", age: 59) == .fresh)
        #expect(decision("max-age=60, must-revalidate", age: 60) == .mustValidate)
    }

    /// RFC 5861 §3, `Reuse.decision`: `stale-while-revalidate` permits reuse during background validation.
    @Test func `stale-while-revalidate reuses within its window (RFC 5861 §3)`() {
        #expect(decision("max-age=60, stale-while-revalidate=30", age: 59) == .fresh)
        #expect(decision("max-age=60, stale-while-revalidate=30", age: 60) == .staleWhileRevalidate)
        #expect(decision("max-age=60, stale-while-revalidate=30", age: 89) == .staleWhileRevalidate)
        #expect(decision("max-age=60, stale-while-revalidate=30", age: 90) == .mustValidate)
        #expect(decision("max-age=60, stale-while-revalidate=x", age: 61) == .mustValidate)
    }

    /// RFC 9111 §4.2.4, `Reuse.decision`: Directives that forbid stale responses, including `s-maxage`, override
    /// `stale-while-revalidate`.
    @Test(arguments: ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=60"])
    func `stale-while-revalidate does not overrule what forbids stale responses (RFC 9111 §4.2.4)`(control: String) {
        #expect(decision("max-age=60, stale-while-revalidate=30, \(control)", age: 61) == .mustValidate)
    }

    /// RFC 8246 §2, `Reuse.decision`: `immutable` has no effect on a stale response.
    @Test func `immutable ends with freshness (RFC 8246 §2)`() {
        #expect(decision("max-age=60, immutable", age: 59) == .fresh)
        #expect(decision("max-age=60, immutable", age: 61) == .mustValidate)
    }

    // MARK: When the origin fails

    /// RFC 9111 §4.2.4, §4.3.3, `Reuse.mayServeStale`: A stale response replaces a missing response and, by choice, any
    /// 5xx.
    @Test(arguments: [OriginFailure.noResponse, .status(500), .status(502), .status(503), .status(504), .status(599)])
    func `a stale response stands in where no response or a 5xx came (RFC 9111 §4.2.4, §4.3.3)`(
        failure: OriginFailure
    ) {
        #expect(servesStale("x", after: failure))
    }

    /// RFC 9111 §4.3.3, `Reuse.mayServeStale`: A stale response replaces no other response.
    @Test(arguments: [200, 301, 403, 404, 410, 429, 499, 600])
    func `a stale response does not replace any other answer (RFC 9111 §4.3.3)`(status: Int) {
        #expect(!servesStale("stale-if-error=100", after: .status(status), request: "max-stale"))
    }

    /// RFC 9111 §4.2.4, `Reuse.mayServeStale`: `no-cache`, `must-revalidate`, `proxy-revalidate` and `s-maxage`
    /// override directives that permit stale responses.
    @Test(arguments: ["must-revalidate", "no-cache", "proxy-revalidate", "s-maxage=60"])
    func `nothing stale is served where a directive forbids it (RFC 9111 §4.2.4)`(control: String) {
        #expect(!servesStale(control))
        #expect(!servesStale("\(control), stale-if-error=100", after: .status(503)))
        #expect(!servesStale(control, request: "max-stale, stale-if-error=100"))
    }

    /// RFC 9111 §5.2.2.8, §5.2.2.10, `Reuse.mayServeStale`: `proxy-revalidate` and `s-maxage` forbid stale responses in
    /// shared caches only.
    @Test(arguments: [
        ("must-revalidate", false), ("no-cache", false), ("proxy-revalidate", true), ("s-maxage=60", true),
    ])
    func `proxy-revalidate and s-maxage forbid it in shared caches only (RFC 9111 §5.2.2.8, §5.2.2.10)`(
        control: String, expected: Bool
    ) {
        #expect(servesStale(control, configuration: caching(isPrivate: true)) == expected)
    }

    /// RFC 9111 §5.2.2.4, `Reuse.mayServeStale`: `no-cache` with field names does not forbid stale responses.
    @Test func `no-cache with names does not forbid stale responses (RFC 9111 §5.2.2.4)`() {
        #expect(servesStale("no-cache=\"a\""))
    }

    /// RFC 5861 §4, `Reuse.mayServeStale`: `stale-if-error` limits the staleness, even if no response arrives.
    @Test func `stale-if-error limits how stale (RFC 5861 §4)`() {
        #expect(servesStale("stale-if-error=60", after: .status(503), staleness: 60))
        #expect(!servesStale("stale-if-error=60", after: .status(503), staleness: 61))
        #expect(!servesStale("stale-if-error=60", after: .noResponse, staleness: 61))
        #expect(!servesStale("stale-if-error=x"))
    }

    /// RFC 5861 §4, RFC 9111 §5.2.1.2, `Reuse.mayServeStale`: A client's `stale-if-error` and `max-stale` permit
    /// greater staleness.
    @Test func `stale-if-error and max-stale of the client permit more (RFC 5861 §4, RFC 9111 §5.2.1.2)`() {
        #expect(servesStale("stale-if-error=10", request: "stale-if-error=60"))
        #expect(!servesStale("stale-if-error=10", request: "stale-if-error=59"))
        #expect(servesStale("stale-if-error=10", request: "max-stale=60"))
        #expect(!servesStale("stale-if-error=10", request: "x"))
    }

    /// RFC 5861 §4, `Reuse.mayServeStale`: Without `stale-if-error` in the response, the client's is the limit.
    @Test func `stale-if-error of the client limits how stale where the response gives none (RFC 5861 §4)`() {
        #expect(servesStale("x", request: "stale-if-error=60"))
        #expect(!servesStale("x", request: "stale-if-error=59"))
        #expect(!servesStale("x", after: .status(503), request: "stale-if-error=59"))
        #expect(servesStale("stale-if-error=60", request: "stale-if-error=59"))
        #expect(servesStale("x", request: "stale-if-error=59, max-stale=60"))
    }

    /// RFC 9111 §5.2.1.4, `Reuse.mayServeStale`: A client's `no-cache` excludes unvalidated responses.
    @Test func `a client that wants validation gets nothing unvalidated (RFC 9111 §5.2.1.4)`() {
        #expect(!servesStale("x", request: "no-cache"))
        #expect(servesStale("x", request: "max-age=0"))
    }

    /// Project rule, `Reuse.mayServeStale`: An unusable 200, such as a broken picture, is treated as missing.
    @Test func `a stale response stands in for a 200 that cannot be used`() {
        #expect(servesStale("x", after: .unusable))
        #expect(!servesStale("must-revalidate", after: .unusable))
    }

    /// Project rule, `Reuse.mayServeStale`: A stored 5xx does not replace a failure.
    @Test(arguments: [500, 502, 503, 599])
    func `a stale 5xx never hides a failure`(status: Int) {
        #expect(!servesStale("stale-if-error=100", status: status))
        #expect(!servesStale("stale-if-error=100", after: .status(503), status: status))
        #expect(servesStale("x", after: .status(503), status: 404))
    }
}
