import Pipeline
import Testing

struct ValidationTests {
    private let modified = "Sat, 05 Nov 1994 08:49:37 GMT"

    @Test func `validators are sent as they were received (RFC 9111 §4.3.1)`() {
        let response = stored(["ETag": "W/\"a\"", "Last-Modified": modified])
        let fields = [HeaderField("If-None-Match", "W/\"a\""), HeaderField("If-Modified-Since", modified)]
        #expect(Validation.conditionalFields(for: response) == fields)
        #expect(!Validation.hasValidator(stored(["Last-Modified": "yesterday"])))
    }

    @Test func `a 304 replaces fields but Content-Length, and the age starts anew (RFC 9111 §3.2, §4.3.4)`() {
        let old = stored([
            "ETag": "\"a\"", "Content-Length": "9", "Age": "50", "X-Old": "1", "X-New": "a", "x-new": "b",
            "Cache-Control": "max-age=1",
        ])
        let later = HTTPDate.text(unixSeconds: Int(epoch) + 100)
        let fields = [
            HeaderField("Date", later), HeaderField("Content-Length", "0"), HeaderField("X-New", "c"),
            HeaderField("Cache-Control", "max-age=60"), HeaderField("Connection", "X-Hop"), HeaderField("X-Hop", "1"),
        ]
        let new = Validation.freshened(old, by: fields, requestTime: epoch + 100, responseTime: epoch + 100)
        #expect(
            new.fields == [
                HeaderField("ETag", "\"a\""), HeaderField("Content-Length", "9"), HeaderField("X-Old", "1"),
                HeaderField("Date", later), HeaderField("X-New", "c"), HeaderField("Cache-Control", "max-age=60"),
            ])
        #expect(Freshness.remaining(of: new, now: epoch + 110) == 50)
    }

    @Test func `a 304 without Date gets the time it arrived (RFC 9110 §6.6.1)`() {
        let old = stored(["Cache-Control": "max-age=60"])
        let new = Validation.freshened(old, by: [], requestTime: epoch + 500, responseTime: epoch + 500)
        #expect(Freshness.remaining(of: new, now: epoch + 510) == 50)
    }

    private static let tags: [(own: String?, tag: String?, expected: Bool)] = [
        ("\"a\"", "\"a\"", true), ("\"a\"", "\"b\"", false), ("\"a\"", "W/\"a\"", true), ("W/\"a\"", "W/\"a\"", true),
        ("W/\"a\"", "\"a\"", false), ("\"a\"", nil, true), (nil, "\"a\"", false),
    ]

    @Test(arguments: tags)
    func `a 304 speaks of the response with its validator (RFC 9111 §4.3.4)`(own: String?, tag: String?, expected: Bool)
    {
        var response = stored([:])
        if let own { response.fields.append(HeaderField("ETag", own)) }
        let fields = tag.map { [HeaderField("ETag", $0)] } ?? []
        #expect(Validation.identifies(response, notModified: fields) == expected)
    }
}

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
        ("max-age=60", OriginFailure.noResponse, true), ("max-age=60", .status(503), false),
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
