import Pipeline
import Testing

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
