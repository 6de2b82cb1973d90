import Pipeline
import Testing

/// 06 Nov 1994 08:49:37, the `Date` of the responses here.
let epoch = 784_111_777.0
let epochText = "Sun, 06 Nov 1994 08:49:37 GMT"

/// A stored response that arrived at its `Date`, at once.
func stored(
    _ fields: KeyValuePairs<String, String>, status: Int = 200, date: String? = epochText
) -> StoredResponse {
    var all = fields.map { HeaderField($0.key, $0.value) }
    if let date { all.append(HeaderField("Date", date)) }
    return StoredResponse(status: status, fields: all, requestTime: epoch, responseTime: epoch)
}

func caching(isPrivate: Bool = false, defaultMaxAge: Int? = nil) -> CachingConfiguration {
    var configuration = CachingConfiguration()
    configuration.isPrivate = isPrivate
    configuration.defaultMaxAge = defaultMaxAge
    return configuration
}

struct FreshnessTests {
    @Test func `s-maxage wins over max-age, max-age over Expires in a shared cache (RFC 9111 §4.2.1)`() {
        let expires = HTTPDate.text(unixSeconds: Int(epoch) + 30)
        let response = stored(["Cache-Control": "max-age=20, s-maxage=10", "Expires": expires])
        #expect(Freshness.lifetime(of: response) == FreshnessLifetime(seconds: 10, basis: .sharedMaxAge))
        let own = Freshness.lifetime(of: response, configuration: caching(isPrivate: true))
        #expect(own == FreshnessLifetime(seconds: 20, basis: .maxAge))
        #expect(
            Freshness.lifetime(of: stored(["Expires": expires])) == FreshnessLifetime(seconds: 30, basis: .expires))
    }

    @Test(arguments: ["0", "-1", "tomorrow", epochText, "Sun, 06 Nov 1994 08:00:00 GMT"])
    func `an Expires that is past or no date means stale (RFC 9111 §5.3)`(text: String) {
        let response = stored(["Expires": text, "Last-Modified": "Sun, 06 Nov 1993 08:49:37 GMT"])
        #expect(Freshness.lifetime(of: response) == FreshnessLifetime(seconds: 0, basis: .expires))
    }

    @Test func `contradicting values mean stale (RFC 9111 §4.2.1)`() {
        let ages = stored(["Cache-Control": "max-age=60", "cache-control": "max-age=6"])
        #expect(Freshness.lifetime(of: ages).seconds == 0)
        let later = HTTPDate.text(unixSeconds: Int(epoch) + 30)
        let dates = stored(["Expires": later, "expires": epochText])
        #expect(Freshness.lifetime(of: dates).seconds == 0)
    }

    @Test func `Expires without Date counts from the time of arrival (RFC 9110 §6.6.1)`() {
        let response = stored(["Expires": HTTPDate.text(unixSeconds: Int(epoch) + 30)], date: nil)
        #expect(Freshness.lifetime(of: response).seconds == 30)
    }

    @Test func `without explicit freshness a tenth of the time since Last-Modified, at most a day (RFC 9111 §4.2.2)`() {
        let hour = stored(["Last-Modified": HTTPDate.text(unixSeconds: Int(epoch) - 36_000)])
        #expect(Freshness.lifetime(of: hour) == FreshnessLifetime(seconds: 3600, basis: .heuristic))
        let old = stored(["Last-Modified": "Sun, 06 Nov 1983 08:49:37 GMT"])
        #expect(Freshness.lifetime(of: old).seconds == 86_400)
        let future = stored(["Last-Modified": "Sun, 06 Nov 2033 08:49:37 GMT"])
        #expect(Freshness.lifetime(of: future).seconds == 0)
    }

    @Test(arguments: [(200, true), (203, true), (301, true), (404, true), (410, true), (302, false), (500, false)])
    func `only some statuses have a heuristic lifetime (RFC 9110 §15.1)`(status: Int, expected: Bool) {
        let modified = HTTPDate.text(unixSeconds: Int(epoch) - 1000)
        let response = stored(["Last-Modified": modified], status: status)
        #expect((Freshness.lifetime(of: response).basis == .heuristic) == expected)
        let isPublic = stored(["Last-Modified": modified, "Cache-Control": "public"], status: status)
        #expect(Freshness.lifetime(of: isPublic).basis == .heuristic)
    }

    @Test func `there is no default lifetime unless configured`() {
        #expect(Freshness.lifetime(of: stored([:])) == FreshnessLifetime(seconds: 0, basis: .none))
        let configured = Freshness.lifetime(of: stored([:]), configuration: caching(defaultMaxAge: 60))
        #expect(configured == FreshnessLifetime(seconds: 60, basis: .configured))
        let error = Freshness.lifetime(of: stored([:], status: 404), configuration: caching(defaultMaxAge: 60))
        #expect(error.seconds == 0)
    }

    @Test func `a response is fresh while its lifetime exceeds its age (RFC 9111 §4.2)`() {
        let response = stored(["Cache-Control": "max-age=60"])
        #expect(Freshness.isFresh(response, now: epoch + 59))
        #expect(!Freshness.isFresh(response, now: epoch + 60))
    }
}

struct AgeTests {
    @Test(arguments: [
        (nil, 0.0), ("10", 10), ("0", 0), ("10, 3", 10), ("4294967296", 2_147_483_648), ("-1", 0), ("1.5", 0),
        ("abc", 0), ("", 0),
    ])
    func `a received Age counts, its first member of several, none if malformed (RFC 9111 §5.1)`(
        text: String?, expected: Double
    ) {
        var response = stored([:])
        if let text { response.fields.append(HeaderField("Age", text)) }
        #expect(Age.current(of: response, now: epoch) == expected)
    }

    @Test func `age is the larger of apparent and corrected age, and the time since (RFC 9111 §4.2.3)`() {
        var response = stored(["Age": "5"])
        response.requestTime = epoch + 97
        response.responseTime = epoch + 100
        #expect(Age.current(of: response, now: epoch + 110) == 110)  // Date says 100 on arrival
        response.fields[0].value = "200"
        #expect(Age.current(of: response, now: epoch + 110) == 213)  // 200, 3 on the way, 10 since
    }

    @Test func `a Date ahead of our clock and a clock set back give no negative age`() {
        var response = stored(["Age": "5"])
        response.responseTime = epoch - 50
        response.requestTime = epoch - 50
        #expect(Age.current(of: response, now: epoch - 100) == 5)
    }
}
