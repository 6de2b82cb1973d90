import HTTPCaching
import Testing

struct FreshnessTests {
    private func isFresh(_ response: StoredResponse, now: Double) -> Bool {
        Reuse.decision(stored: response, now: now, policy: .protocol) == .fresh
    }

    /// RFC 9111 §4.2.1, `Freshness.lifetime`: The precedence is `s-maxage` (in a shared cache), `max-age`, `Expires` −
    /// `Date`.
    @Test func `s-maxage wins over max-age, max-age over Expires in a shared cache (RFC 9111 §4.2.1)`() {
        let expires = HTTPDate.text(unixSeconds: Int(epoch) + 30)
        let response = stored(["Cache-Control": "max-age=20, s-maxage=10", "Expires": expires])
        #expect(Freshness.lifetime(of: response) == FreshnessLifetime(seconds: 10, basis: .sharedMaxAge))
        let own = Freshness.lifetime(of: response, configuration: caching(isPrivate: true))
        #expect(own == FreshnessLifetime(seconds: 20, basis: .maxAge))
        #expect(
            Freshness.lifetime(of: stored(["Expires": expires])) == FreshnessLifetime(seconds: 30, basis: .expires))
    }

    /// RFC 9111 §5.2.2.10, `Freshness.lifetime`: A private cache ignores `s-maxage`.
    @Test func `a private cache goes by max-age, not by s-maxage (RFC 9111 §5.2.2.10)`() {
        let response = stored(["Cache-Control": "s-maxage=60"])
        let lifetime = Freshness.lifetime(of: response, configuration: caching(isPrivate: true))
        #expect(lifetime == FreshnessLifetime(seconds: 0, basis: .none))
    }

    /// RFC 9111 §5.3, `Freshness.lifetime`: An `Expires` that is in the past, `0` or not a date makes the response
    /// stale.
    @Test(arguments: ["0", "-1", "tomorrow", epochText, "Sun, 06 Nov 1994 08:00:00 GMT"])
    func `an Expires that is past or no date means stale (RFC 9111 §5.3)`(text: String) {
        let response = stored(["Expires": text, "Last-Modified": "Sun, 06 Nov 1993 08:49:37 GMT"])
        #expect(Freshness.lifetime(of: response) == FreshnessLifetime(seconds: 0, basis: .expires))
    }

    /// RFC 9111 §4.2, §5.3, `Freshness.lifetime`: `Expires` in an invalid form means stale.
    @Test(arguments: [
        "Thu, 18 Aug 2050 02:01:18 UTC", "Thu, 18 Aug 2050 02:01:18 AEST", "Thu, 18 Aug 50 02:01:18 GMT",
        "Thu 18 Aug 2050 02:01:18 GMT", "Thu, 18  Aug  2050 02:01:18 GMT", "Thu, 18-Aug-2050 02:01:18 GMT",
        "Thu, 18 Aug 2050 02.01.18 GMT", "Thu, 18 Aug 2050 2:01:18 GMT",
    ])
    func `an Expires in no valid form means stale (RFC 9111 §4.2, §5.3)`(text: String) {
        #expect(Freshness.lifetime(of: stored(["Expires": text])).seconds == 0)
    }

    /// RFC 9111 §4.2, `Freshness.lifetime`: `Expires` is accepted in every valid form, in any case and with any
    /// weekday.
    @Test(arguments: [
        "Tue, 19 Jan 2038 14:14:08 GMT", "Sun, 21 Nov 2286 04:46:39 GMT", "Thursday, 18-Aug-30 02:01:18 GMT",
        "Thu Aug  8 02:01:18 2050", "THU, 18 AUG 2050 02:01:18 gMT",
    ])
    func `an Expires in any valid form counts (RFC 9111 §4.2)`(text: String) {
        #expect(isFresh(stored(["Expires": text]), now: epoch + 86_400))
    }

    /// RFC 9111 §4.2.1, `Freshness.lifetime`: A malformed `max-age` or `s-maxage` means stale, whatever the other
    /// fields say.
    @Test(arguments: ["max-age", "max-age=", "max-age=-1", "max-age=1.5", "max-age=x", "max-age='60'", "max-age= 60"])
    func `a malformed max-age means stale, whatever Expires says (RFC 9111 §4.2.1)`(control: String) {
        let response = stored(["Cache-Control": control, "Expires": HTTPDate.text(unixSeconds: Int(epoch) + 30)])
        #expect(Freshness.lifetime(of: response) == FreshnessLifetime(seconds: 0, basis: .maxAge))
    }

    /// RFC 9111 §5.3, `Freshness.lifetime`: `max-age` takes precedence even over an invalid `Expires`.
    @Test func `max-age wins over an Expires in the past or invalid (RFC 9111 §5.3)`() {
        let past = stored(["Cache-Control": "max-age=60", "Expires": "Sun, 06 Nov 1983 08:49:37 GMT"])
        #expect(Freshness.lifetime(of: past).seconds == 60)
        #expect(Freshness.lifetime(of: stored(["Cache-Control": "max-age=60", "Expires": "0"])).seconds == 60)
        let none = stored(["Cache-Control": "max-age=0", "Expires": HTTPDate.text(unixSeconds: Int(epoch) + 30)])
        #expect(Freshness.lifetime(of: none).seconds == 0)
    }

    /// RFC 9111 §4.2.1, `Freshness.lifetime`: Choice: contradictory repetitions mean stale, so that no old picture is
    /// shown.
    @Test func `contradicting values mean stale (RFC 9111 §4.2.1)`() {
        let ages = stored(["Cache-Control": "max-age=60", "cache-control": "max-age=6"])
        #expect(Freshness.lifetime(of: ages).seconds == 0)
        let later = HTTPDate.text(unixSeconds: Int(epoch) + 30)
        let dates = stored(["Expires": later, "expires": epochText])
        #expect(Freshness.lifetime(of: dates).seconds == 0)
    }

    /// RFC 9110 §6.6.1, `Freshness.lifetime`: `Expires` without `Date` is measured from the time of arrival.
    @Test func `Expires without Date counts from the time of arrival (RFC 9110 §6.6.1)`() {
        let response = stored(["Expires": HTTPDate.text(unixSeconds: Int(epoch) + 30)], date: nil)
        #expect(Freshness.lifetime(of: response).seconds == 30)
    }

    /// RFC 9111 §4.2.1, `Freshness.lifetime`: `Expires` is measured from a valid `Date`, not from the local clock.
    @Test func `Expires counts from Date, not from our clock (RFC 9111 §4.2.1)`() {
        let response = stored(
            ["Expires": HTTPDate.text(unixSeconds: Int(epoch) + 300)],
            date: HTTPDate.text(unixSeconds: Int(epoch) + 400))
        #expect(!isFresh(response, now: epoch))
        let fast = stored(
            ["Expires": HTTPDate.text(unixSeconds: Int(epoch) + 20), "Age": "15"],
            date: HTTPDate.text(unixSeconds: Int(epoch) + 10))
        #expect(Freshness.remaining(of: fast, now: epoch) == -5)
        let invalid = stored(["Expires": HTTPDate.text(unixSeconds: Int(epoch) + 10)], date: "foo")
        #expect(Freshness.remaining(of: invalid, now: epoch) == 10)
    }

    /// RFC 9111 §4.2.2, `Freshness.lifetime`: The heuristic lifetime is a tenth of `Date` − `Last-Modified`, at most
    /// one day.
    @Test func `without explicit freshness a tenth of the time since Last-Modified, at most a day (RFC 9111 §4.2.2)`() {
        let hour = stored(["Last-Modified": HTTPDate.text(unixSeconds: Int(epoch) - 36_000)])
        #expect(Freshness.lifetime(of: hour) == FreshnessLifetime(seconds: 3600, basis: .heuristic))
        let old = stored(["Last-Modified": "Sun, 06 Nov 1983 08:49:37 GMT"])
        #expect(Freshness.lifetime(of: old).seconds == 86_400)
        let future = stored(["Last-Modified": "Sun, 06 Nov 2033 08:49:37 GMT"])
        #expect(Freshness.lifetime(of: future).seconds == 0)
    }

    /// RFC 9110 §15.1, `Freshness.lifetime`: Only the statuses of §15.1 have a heuristic lifetime.
    @Test(arguments: 200...999)
    func `the statuses of RFC 9110 §15.1 and no others have a lifetime by heuristic`(status: Int) {
        let modified = HTTPDate.text(unixSeconds: Int(epoch) - 1000)
        let response = stored(["Last-Modified": modified], status: status)
        let expected = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
        #expect((Freshness.lifetime(of: response).basis == .heuristic) == expected)
    }

    /// RFC 9111 §4.2.2, `Freshness.lifetime`: `public` permits a heuristic lifetime for any status.
    @Test func `public permits a lifetime by heuristic for any status (RFC 9111 §4.2.2)`() {
        let modified = HTTPDate.text(unixSeconds: Int(epoch) - 1000)
        let response = stored(["Last-Modified": modified, "Cache-Control": "public"], status: 599)
        #expect(Freshness.lifetime(of: response) == FreshnessLifetime(seconds: 100, basis: .heuristic))
    }

    /// RFC 9111 §4.2.2, `Freshness.lifetime`: An explicit lifetime excludes the heuristic.
    @Test func `no heuristic where the lifetime is explicit (RFC 9111 §4.2.2)`() {
        let modified = HTTPDate.text(unixSeconds: Int(epoch) - 1000)
        let response = stored(["Last-Modified": modified, "Expires": "0"])
        #expect(Freshness.lifetime(of: response).seconds == 0)
    }

    /// Project rule, `CachingConfiguration.defaultMaxAge`: The default lifetime, for 200 only, is `defaultMaxAge`, if
    /// set.
    @Test func `there is no default lifetime unless configured`() {
        #expect(Freshness.lifetime(of: stored([:])) == FreshnessLifetime(seconds: 0, basis: .none))
        let configured = Freshness.lifetime(of: stored([:]), configuration: caching(defaultMaxAge: .seconds(60)))
        #expect(configured == FreshnessLifetime(seconds: 60, basis: .configured))
        let error = Freshness.lifetime(
            of: stored([:], status: 404), configuration: caching(defaultMaxAge: .seconds(60)))
        #expect(error.seconds == 0)
    }

    /// Project rule, `StoredResponse.lifetimeLimit`: An assigned lifetime replaces the lifetime from the fields; a
    /// limit shortens either.
    @Test func `an assigned lifetime takes the place of what the fields say, a limit shortens either`() {
        var response = stored(["Cache-Control": "max-age=60"])
        response.lifetimeLimit = 30
        #expect(Freshness.lifetime(of: response) == FreshnessLifetime(seconds: 30, basis: .maxAge))
        response.assignedLifetime = 100
        #expect(Freshness.lifetime(of: response) == FreshnessLifetime(seconds: 30, basis: .configured))
        response.lifetimeLimit = nil
        #expect(Freshness.lifetime(of: response) == FreshnessLifetime(seconds: 100, basis: .configured))
    }

    /// RFC 9111 §4.2, `Reuse.decision`: A response is fresh while its lifetime exceeds its age.
    @Test func `a response is fresh while its lifetime exceeds its age (RFC 9111 §4.2)`() {
        let response = stored(["Cache-Control": "max-age=60"])
        #expect(isFresh(response, now: epoch + 59))
        #expect(!isFresh(response, now: epoch + 60))
    }
}
