import Pipeline
import Testing

struct ReuseTests {
    private let tagged: KeyValuePairs = ["Cache-Control": "max-age=60", "ETag": "\"a\""]

    @Test(arguments: [
        (CachePolicy.protocol, 10.0, ReuseDecision.fresh), (.protocol, 100, .mustValidate),
        (.cacheElseLoad, 10, .fresh), (.cacheElseLoad, 100, .stale), (.cacheOnly, 100, .stale),
        (.reload, 10, .mustFetch), (.revalidate, 10, .mustValidate), (.revalidate, 100, .mustValidate),
    ])
    func `each policy has its decision`(policy: CachePolicy, age: Double, expected: ReuseDecision) {
        #expect(Reuse.decision(stored: stored(tagged), now: epoch + age, policy: policy) == expected)
    }

    @Test(arguments: [
        ("max-age=60, no-cache", 1.0, ReuseDecision.mustFetch), ("max-age=60", 61, .mustFetch),
        ("max-age=60, stale-while-revalidate=30", 61, .staleWhileRevalidate),
        ("max-age=60, stale-while-revalidate=30", 91, .mustFetch),
        ("max-age=60, stale-while-revalidate=30, must-revalidate", 61, .mustFetch),
        ("max-age=60, must-revalidate", 1, .fresh),
    ])
    func `no-cache, stale-while-revalidate and must-revalidate decide (RFC 9111 §5.2.2, RFC 5861 §3)`(
        control: String, age: Double, expected: ReuseDecision
    ) {
        let response = stored(["Cache-Control": control])
        #expect(Reuse.decision(stored: response, now: epoch + age, policy: .protocol) == expected)
    }

    @Test(arguments: [
        ("max-age=60", OriginFailure.noResponse, true), ("max-age=60", .status(503), true),
        ("max-age=60, stale-if-error=100", .status(503), true), ("max-age=60, stale-if-error=10", .status(503), false),
        ("max-age=60, stale-if-error=100", .status(404), false), ("max-age=60, must-revalidate", .noResponse, false),
        ("max-age=60, no-cache", .noResponse, false), ("max-age=60, proxy-revalidate", .noResponse, false),
        ("s-maxage=60", .noResponse, false),
    ])
    func `a stale response stands in for a failed origin unless forbidden (RFC 9111 §4.2.4, RFC 5861 §4)`(
        control: String, failure: OriginFailure, expected: Bool
    ) {
        let response = stored(["Cache-Control": control])
        #expect(Reuse.mayServeStale(response, after: failure, now: epoch + 120) == expected)
        let own = stored(["Cache-Control": control], status: 502)
        #expect(!Reuse.mayServeStale(own, after: failure, now: epoch + 120))
    }
}
