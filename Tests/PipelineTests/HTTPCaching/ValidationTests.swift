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
