@testable import HTTPCaching
import TestSupport

@testable import Pipeline

extension PipelineFuzzTests {
    /// Dates: what is read, written and read again is the same second.
    static let httpDateTarget = FuzzTarget(
        "http-date",
        words: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "29 Feb 2000",
            "29 Feb 1900", "31 Dec 9999 23:59:60", "00", "99", "0000", "9999", "60", "24", "gmt", "UTC", " ", "  ",
        ], limit: 256
    ) { bytes in
        guard let seconds = HTTPDate.unixSeconds(bytes.fuzzText, now: fuzzedTime) else { return nil }
        let text = HTTPDate.text(unixSeconds: seconds)
        return HTTPDate.unixSeconds(text, now: fuzzedTime) == seconds ? nil : "\(seconds) is written as `\(text)`"
    }
}
