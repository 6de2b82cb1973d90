import HTTPCaching
import Testing

@Suite struct DerivedFreshnessTests {
    private func derived(_ control: String?, age: Double = 10, isStale: Bool = false, other: [HeaderField] = [])
        -> String
    {
        let now = 1_800_000_000.0
        var fields = other
        if let control { fields.append(HeaderField("Cache-Control", control)) }
        let response = StoredResponse(status: 200, fields: fields, requestTime: now - age, responseTime: now - age)
        return DerivedFreshness.cacheControl(of: response, isStale: isStale, now: now)
    }

    /// RFC 9111 §4.2, `DerivedFreshness.cacheControl`: `max-age`, `stale-while-revalidate` and `stale-if-error` are
    /// reduced to the remaining seconds. `private`, `must-revalidate`, `proxy-revalidate` and `immutable` are copied.
    @Test(arguments: [
        ("max-age=60", "max-age=50"),
        ("max-age=60, must-revalidate", "max-age=50, must-revalidate"),
        ("private, max-age=60", "private, max-age=50"),
        ("max-age=60, immutable", "max-age=50, immutable"),
        (
            "max-age=60, stale-while-revalidate=30, stale-if-error=90",
            "max-age=50, stale-while-revalidate=30, stale-if-error=90"
        ),
        ("max-age=60, no-store", "no-store"),
        ("max-age=60, no-cache", "no-cache"),
        ("max-age=10", "max-age=0"),
        ("max-age=4, immutable, stale-while-revalidate=30", "max-age=0, stale-while-revalidate=24"),
        ("max-age=4, stale-if-error=6", "max-age=0"),
        ("s-maxage=60", "max-age=50"),
        ("s-maxage=60, max-age=20, proxy-revalidate", "max-age=10, s-maxage=50, proxy-revalidate"),
        ("s-maxage=20, max-age=60", "max-age=10"),
        ("max-age=99999999999", "max-age=2147483638"),
    ])
    func `what remains of the original's freshness is handed on`(_ control: String, _ expected: String) {
        #expect(derived(control) == expected)
    }

    /// RFC 9111 §4.2.4, `DerivedFreshness.cacheControl`: A variant of a stale original has no freshness.
    @Test func `an original used stale gives nothing away`() {
        #expect(derived("max-age=60", age: 100, isStale: true) == "max-age=0")
        #expect(derived(nil, isStale: true) == "max-age=0")
        #expect(
            derived("max-age=5, stale-while-revalidate=20", isStale: true) == "max-age=0, stale-while-revalidate=15")
    }

    /// RFC 9111 §5.2.2.4, `DerivedFreshness.cacheControl`: A variant of an original without freshness information gets
    /// `no-cache`.
    @Test func `an original without freshness is asked about each time`() {
        #expect(derived(nil) == "no-cache")
        #expect(derived("private") == "private, no-cache")
    }

    /// RFC 9111 §4.2.2, `DerivedFreshness.cacheControl`: A heuristic lifetime is treated like an explicit one.
    @Test func `a lifetime by heuristic counts as one`() {
        let modified = HeaderField("Last-Modified", HTTPDate.text(unixSeconds: 1_800_000_000 - 1010))
        #expect(derived(nil, other: [modified]) == "max-age=90")
    }
}
