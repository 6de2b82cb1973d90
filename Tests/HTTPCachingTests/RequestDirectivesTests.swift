import HTTPCaching
import Testing

/// A decision under `protocol` for a request with these fields.
private func decision(
    _ response: StoredResponse, age: Double, _ fields: KeyValuePairs<String, String>
) -> ReuseDecision {
    let directives = RequestDirectives(fields: fields.map { HeaderField($0.key, $0.value) })
    return Reuse.decision(stored: response, now: epoch + age, policy: .protocol, directives: directives)
}

struct RequestDirectivesTests {
    private let tagged = stored(["Cache-Control": "max-age=60", "ETag": "\"a\""])

    private func directives(_ fields: KeyValuePairs<String, String>) -> RequestDirectives {
        RequestDirectives(fields: fields.map { HeaderField($0.key, $0.value) })
    }

    /// RFC 9111 §5.2.1, `RequestDirectives.maxAge`: Every request directive is read, case-insensitively.
    @Test func `every request directive is read, in any case (RFC 9111 §5.2.1)`() {
        let all = directives([
            "Cache-Control": "No-Cache, NO-STORE, only-if-cached, Max-Age=1, min-fresh=2",
            "cache-control": "max-stale=3, stale-if-error=4, unknown=5",
        ])
        var expected = RequestDirectives()
        (expected.noCache, expected.noStore, expected.onlyIfCached) = (true, true, true)
        (expected.maxAge, expected.minFresh, expected.maxStale, expected.staleIfError) = (1, 2, .seconds(3), 4)
        #expect(all == expected)
        #expect(directives(["Cache-Control": "max-stale"]).maxStale == .any)
        #expect(directives(["Cache-Control": "nothing-known"]) == RequestDirectives())
        #expect(directives([:]) == RequestDirectives())
    }

    /// RFC 9111 §5.2.1, `RequestDirectives.minFresh`: Malformed values are ignored; the strictest of several values
    /// applies.
    @Test func `malformed request values count as not given, the strictest of several counts (RFC 9111 §5.2.1)`() {
        let malformed = directives(["Cache-Control": "max-age=x, min-fresh=-1, max-stale=1.5, stale-if-error="])
        #expect(malformed == RequestDirectives())
        let several = directives([
            "Cache-Control": "max-age=9, max-age=5, min-fresh=1, min-fresh=3, max-stale, max-stale=2"
        ])
        #expect(several.maxAge == 5 && several.minFresh == 3 && several.maxStale == .seconds(2))
    }

    /// RFC 9111 §5.4, `RequestDirectives.noCache`: `Pragma: no-cache` applies only without `Cache-Control`.
    @Test func `Pragma no-cache counts only without Cache-Control (RFC 9111 §5.4)`() {
        #expect(directives(["Pragma": "x, No-Cache"]).noCache)
        #expect(!directives(["Pragma": "no-cache", "Cache-Control": "x"]).noCache)
        #expect(!directives(["Pragma": "x"]).noCache)
    }

    /// RFC 9111 §5.2.1.4, `Reuse.decision`: `no-cache` requires validation of a fresh response.
    @Test func `no-cache in a request wants validation of what is fresh (RFC 9111 §5.2.1.4)`() {
        #expect(decision(tagged, age: 1, [:]) == .fresh)
        #expect(decision(tagged, age: 1, ["Cache-Control": "no-cache"]) == .mustValidate)
        #expect(decision(tagged, age: 1, ["Pragma": "no-cache"]) == .mustValidate)
        #expect(decision(stored(["Cache-Control": "max-age=60"]), age: 1, ["Pragma": "no-cache"]) == .mustFetch)
    }

    /// RFC 9111 §5.2.1.1, `Reuse.decision`: `max-age` limits the age.
    @Test func `max-age in a request limits the age (RFC 9111 §5.2.1.1)`() {
        #expect(decision(tagged, age: 10, ["Cache-Control": "max-age=10"]) == .fresh)
        #expect(decision(tagged, age: 11, ["Cache-Control": "max-age=10"]) == .mustValidate)
        #expect(decision(tagged, age: 1, ["Cache-Control": "max-age=0"]) == .mustValidate)
        #expect(decision(tagged, age: 70, ["Cache-Control": "max-age=100"]) == .mustValidate)
    }

    /// RFC 9111 §5.2.1.3, `Reuse.decision`: `min-fresh` requires at least the given remaining freshness.
    @Test func `min-fresh in a request wants that much freshness left (RFC 9111 §5.2.1.3)`() {
        #expect(decision(tagged, age: 10, ["Cache-Control": "min-fresh=50"]) == .fresh)
        #expect(decision(tagged, age: 11, ["Cache-Control": "min-fresh=50"]) == .mustValidate)
        #expect(decision(tagged, age: 11, ["Cache-Control": "min-fresh=50, max-stale"]) == .mustValidate)
    }

    /// RFC 9111 §5.2.1.2, `Reuse.decision`: `max-stale` permits staleness up to its value; without a value, any
    /// staleness.
    @Test func `max-stale in a request permits stale responses, so far or any (RFC 9111 §5.2.1.2)`() {
        #expect(decision(tagged, age: 90, ["Cache-Control": "max-stale=30"]) == .stale)
        #expect(decision(tagged, age: 91, ["Cache-Control": "max-stale=30"]) == .mustValidate)
        #expect(decision(tagged, age: 9999, ["Cache-Control": "max-stale"]) == .stale)
        #expect(decision(tagged, age: 10, ["Cache-Control": "max-stale"]) == .fresh)
    }

    /// RFC 9111 §4.2.4, `Reuse.decision`: `max-stale` does not override directives that forbid stale responses.
    @Test(arguments: ["must-revalidate", "proxy-revalidate", "s-maxage=60", "no-cache"])
    func `max-stale does not overrule what forbids stale responses (RFC 9111 §4.2.4)`(control: String) {
        let response = stored(["Cache-Control": "max-age=60, \(control)", "ETag": "\"a\""])
        #expect(decision(response, age: 61, ["Cache-Control": "max-stale"]) == .mustValidate)
    }

    /// RFC 9111 §5.2.1.1, `Reuse.decision`: `max-age` and `min-fresh` exclude stale responses with background
    /// validation.
    @Test func `a client that names an age gets nothing stale while it is validated (RFC 9111 §5.2.1.1)`() {
        let response = stored(["Cache-Control": "max-age=60, stale-while-revalidate=60", "ETag": "\"a\""])
        #expect(decision(response, age: 61, [:]) == .staleWhileRevalidate)
        #expect(decision(response, age: 61, ["Cache-Control": "max-age=600"]) == .mustValidate)
        #expect(decision(response, age: 61, ["Cache-Control": "min-fresh=0"]) == .mustValidate)
    }

    /// RFC 9111 §5.2.1.7, `Reuse.decisionWithoutStored`: `only-if-cached` returns a stored response or a 504.
    @Test func `only-if-cached gets what is stored or 504 (RFC 9111 §5.2.1.7)`() {
        #expect(decision(tagged, age: 1, ["Cache-Control": "only-if-cached"]) == .fresh)
        #expect(decision(tagged, age: 61, ["Cache-Control": "only-if-cached"]) == .gatewayTimeout)
        #expect(decision(tagged, age: 61, ["Cache-Control": "only-if-cached, max-stale"]) == .stale)
        #expect(decision(tagged, age: 1, ["Cache-Control": "only-if-cached, no-cache"]) == .gatewayTimeout)
        let asked = directives(["Cache-Control": "only-if-cached"])
        #expect(Reuse.decisionWithoutStored(policy: .protocol, directives: asked) == .gatewayTimeout)
        #expect(Reuse.decisionWithoutStored(policy: .protocol) == .mustFetch)
        #expect(Reuse.decisionWithoutStored(policy: .cacheElseLoad, directives: asked) == .mustFetch)
        #expect(Reuse.decisionWithoutStored(policy: .cacheOnly) == .gatewayTimeout)
    }

    /// RFC 8246 §2.1, `Reuse.decision`: A fresh `immutable` response satisfies any `max-age`, but not `no-cache`.
    @Test func `a fresh immutable response satisfies a reload, not no-cache (RFC 8246 §2.1)`() {
        let response = stored(["Cache-Control": "max-age=60, immutable", "ETag": "\"a\""])
        #expect(decision(response, age: 10, ["Cache-Control": "max-age=0"]) == .fresh)
        #expect(decision(response, age: 10, ["Cache-Control": "no-cache"]) == .mustValidate)
        #expect(decision(response, age: 61, ["Cache-Control": "max-age=0"]) == .mustValidate)
    }

    /// RFC 9111 §5.2.1.5, `Reuse.decision`: Choice: `no-store` permits the use of stored responses.
    @Test func `no-store in a request does not keep stored responses from use (RFC 9111 §5.2.1.5)`() {
        #expect(decision(tagged, age: 10, ["Cache-Control": "no-store"]) == .fresh)
    }

    /// Project rule, `Reuse.decision`: Request directives apply with the `protocol` policy only.
    @Test(arguments: [
        (CachePolicy.cacheElseLoad, ReuseDecision.fresh), (.cacheOnly, .fresh), (.reload, .mustFetch),
        (.revalidate, .mustValidate),
    ])
    func `directives refine the protocol policy only`(policy: CachePolicy, expected: ReuseDecision) {
        let asked = directives(["Cache-Control": "no-cache, only-if-cached"])
        let decision = Reuse.decision(stored: tagged, now: epoch + 1, policy: policy, directives: asked)
        #expect(decision == expected)
    }
}
