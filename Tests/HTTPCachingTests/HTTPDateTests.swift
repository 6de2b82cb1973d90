import HTTPCaching
import Testing

struct HTTPDateTests {
    /// RFC 9110 §5.6.7, `HTTPDate.unixSeconds`: IMF-fixdate, RFC 850 and asctime dates are accepted.
    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    ])
    func `the three forms are read (RFC 9110 §5.6.7)`(text: String) {
        #expect(HTTPDate.unixSeconds(text, now: 1_700_000_000) == 784_111_777)
    }

    /// RFC 9110 §5.6.7, RFC 9111 §4.2, `HTTPDate.unixSeconds`: Dates with a zone other than GMT, with extra or missing
    /// digits or spaces, or with a nonexistent day are invalid.
    @Test(arguments: [
        "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT", "Sun,  06 Nov 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Xxx, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT", "1994-11-06T08:49:37Z", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT and more",
    ])
    func `nothing else is a date`(text: String) { #expect(HTTPDate.unixSeconds(text, now: 1_700_000_000) == nil) }

    /// RFC 9111 §4.2, `HTTPDate.unixSeconds`: Dates are case-insensitive, unlike in RFC 9110 §5.6.7.
    @Test(arguments: [
        "SUN, 06 Nov 1994 08:49:37 GMT", "Sun, 06 nOV 1994 08:49:37 GMT", "sun, 06 nov 1994 08:49:37 gmt",
        "SUNDAY, 06-NOV-94 08:49:37 gMT", "sun nov  6 08:49:37 1994",
    ])
    func `letter case does not matter to a cache (RFC 9111 §4.2)`(text: String) {
        #expect(HTTPDate.unixSeconds(text, now: 1_700_000_000) == 784_111_777)
    }

    /// RFC 9110 §5.6.7, `HTTPDate.unixSeconds`: The weekday is not checked against the date.
    @Test func `a weekday that does not fit the date does no harm`() {
        #expect(HTTPDate.unixSeconds("Mon, 06 Nov 1994 08:49:37 GMT", now: 0) == 784_111_777)
    }

    /// RFC 9110 §5.6.7, `HTTPDate.unixSeconds`: The day of an asctime date can begin with a space.
    @Test func `an asctime day has two places, a space or a digit first (RFC 9110 §5.6.7)`() {
        #expect(HTTPDate.unixSeconds("Sun Nov  6 08:49:37 1994", now: 0) == 784_111_777)
        #expect(HTTPDate.unixSeconds("Sun Nov 06 08:49:37 1994", now: 0) == 784_111_777)
        #expect(HTTPDate.unixSeconds("Sun Nov 6 08:49:37 1994 ", now: 0) == nil)
        #expect(HTTPDate.unixSeconds("Sun Nov 6 08:49:37 01994", now: 0) == nil)
        #expect(HTTPDate.unixSeconds("Wed Nov 16 08:49:37 1994", now: 0) == 784_975_777)
    }

    /// RFC 9110 §5.6.7, `HTTPDate.unixSeconds`: A two-digit year is at most 50 years in the future.
    @Test func `a two-digit year over 50 years ahead is of the past century (RFC 9110 §5.6.7)`() {
        let now = 1_795_000_000.0  // 18 November 2026, 11:06:40
        #expect(HTTPDate.unixSeconds("Friday, 06-Nov-76 00:00:00 GMT", now: now) == 3_371_846_400)  // 2076
        #expect(HTTPDate.unixSeconds("Wednesday, 18-Nov-76 11:06:40 GMT", now: now) == 3_372_923_200)  // 2076
        #expect(HTTPDate.unixSeconds("Thursday, 18-Nov-76 11:06:41 GMT", now: now) == 217_163_201)  // 1976
        #expect(HTTPDate.unixSeconds("Sunday, 06-Nov-77 00:00:00 GMT", now: now) == 247_622_400)  // 1977
        #expect(HTTPDate.unixSeconds("Sunday, 18-Aug-30 00:00:00 GMT", now: 784_111_777) == 1_913_241_600)  // 2030
        #expect(HTTPDate.unixSeconds("Sunday, 06-Nov-1977 00:00:00 GMT", now: now) == nil)
    }

    /// RFC 9111 §4.2, `HTTPDate.unixSeconds`: Dates beyond 32 bits are read.
    @Test func `dates beyond 32 bits are read`() {
        #expect(HTTPDate.unixSeconds("Sun, 21 Nov 2286 04:46:39 GMT", now: 0) == 10_000_039_599)
    }

    /// RFC 9110 §5.6.7, `HTTPDate.unixSeconds`: A leap second at the end of 9999 is treated as the last ordinary second
    /// of that year.
    @Test func `the leap second after the year 9999 is its last second, which can be written`() {
        let last = HTTPDate.unixSeconds("Fri, 31 Dec 9999 23:59:60 GMT", now: 0)
        #expect(last.map { HTTPDate.text(unixSeconds: $0) } == "Fri, 31 Dec 9999 23:59:59 GMT")
    }

    /// RFC 9110 §5.6.7, `HTTPDate.text`: Dates that this project writes can be read back, even dates before 1970.
    @Test(arguments: [0, 784_111_777, 951_827_696, 4_102_444_800, 1_709_164_799, 1_709_251_199, -1])
    func `what is written reads back`(seconds: Int) {
        #expect(HTTPDate.unixSeconds(HTTPDate.text(unixSeconds: seconds), now: 0) == seconds)
    }

    /// RFC 9110 §5.6.7, `HTTPDate.text`: Dates are written as IMF-fixdate.
    @Test func `dates are written as IMF-fixdate`() {
        #expect(HTTPDate.text(unixSeconds: 784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate.text(unixSeconds: 0) == "Thu, 01 Jan 1970 00:00:00 GMT")
    }
}
