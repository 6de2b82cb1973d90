import HTTPCaching
import Testing

/// Conditional requests (RFC 9111 §4.3.1, §4.3.2).
struct ValidationTests {
    private let modified = "Sat, 05 Nov 1994 08:49:37 GMT"

    /// RFC 9111 §4.3.1, `Validation.conditionalFields`: `If-None-Match` and `If-Modified-Since` contain the validators
    /// as received.
    @Test func `validators are sent as they were received (RFC 9111 §4.3.1)`() {
        let response = stored(["ETag": "W/\"a\"", "Last-Modified": modified])
        let fields = [HeaderField("If-None-Match", "W/\"a\""), HeaderField("If-Modified-Since", modified)]
        #expect(Validation.conditionalFields(for: response) == fields)
        let unquoted = stored(["ETag": "abc"])
        #expect(Validation.conditionalFields(for: unquoted) == [HeaderField("If-None-Match", "abc")])
    }

    /// RFC 9111 §4.3.1, `Validation.hasValidator`: An invalid date or an empty tag is not a validator.
    @Test func `an invalid date is no validator (RFC 9111 §4.3.1)`() {
        #expect(!Validation.hasValidator(stored(["Last-Modified": "yesterday"])))
        #expect(!Validation.hasValidator(stored(["ETag": ""])))
        #expect(Validation.hasValidator(stored(["Last-Modified": modified])))
    }

    /// RFC 9111 §4.3.1, `Validation.conditionalFields`: The tags of all stored 200 responses are sent, the selected
    /// response's first.
    @Test func `the tags of all stored responses are sent, the selected one first, each once (RFC 9111 §4.3.1)`() {
        let all = [
            stored(["ETag": "\"a\""]), stored(["ETag": "W/\"b\"", "Last-Modified": modified]),
            stored(["ETag": "\"a\""]), stored(["ETag": "\"c\""], status: 404), stored([:]),
        ]
        #expect(
            Validation.conditionalFields(forAny: all, selected: 1)
                == [HeaderField("If-None-Match", "W/\"b\", \"a\"")])
        #expect(
            Validation.conditionalFields(forAny: all, selected: nil)
                == [HeaderField("If-None-Match", "\"a\", W/\"b\"")])
    }

    /// RFC 9111 §4.3.1, `Validation.conditionalFields`: A date is sent only if one response is validated.
    @Test func `a date is sent only where one response is validated (RFC 9111 §4.3.1)`() {
        let dated = stored(["Last-Modified": modified])
        let since = [HeaderField("If-Modified-Since", modified)]
        #expect(Validation.conditionalFields(forAny: [dated, stored([:])], selected: 0) == since)
        #expect(Validation.conditionalFields(forAny: [dated, stored(["ETag": "\"a\""])], selected: 0) == since)
        #expect(Validation.conditionalFields(forAny: [dated], selected: nil) == [])
        let same = [stored(["ETag": "\"a\"", "Last-Modified": modified]), stored(["ETag": "\"a\""])]
        #expect(
            Validation.conditionalFields(forAny: same, selected: 0) == [HeaderField("If-None-Match", "\"a\"")])
    }

    /// RFC 9110 §13.1.2, `Validation.conditionalFields`: A malformed tag is sent alone or not at all.
    @Test func `a malformed tag is sent alone or not at all (RFC 9110 §13.1.2)`() {
        let all = [stored(["ETag": "a,b"]), stored(["ETag": "\"c\""]), stored(["ETag": "d"])]
        #expect(Validation.conditionalFields(forAny: all, selected: 0) == [HeaderField("If-None-Match", "a,b")])
        #expect(Validation.conditionalFields(forAny: all, selected: 1) == [HeaderField("If-None-Match", "\"c\"")])
    }

    /// Project rule, `Validation.maxTags`: At most sixteen tags are sent.
    @Test func `no more than sixteen tags are sent`() throws {
        let all = (0..<40).map { stored(["ETag": "\"\($0)\""]) }
        let value = try #require(Validation.conditionalFields(forAny: all, selected: 39).first?.value)
        #expect(EntityTag.list(value).count == 16 && value.hasPrefix("\"39\", \"0\""))
    }

    /// RFC 9111 §4.3.2, `Validation.requestFields`: Choice: the cache's conditions replace the client's conditions and
    /// range.
    @Test func `our conditions take the place of the client's conditions and range (RFC 9111 §4.3.2)`() {
        let client = [
            "Accept", "If-None-Match", "if-modified-since", "If-Match", "If-Unmodified-Since", "If-Range", "RANGE",
        ].map { HeaderField($0, "v") }
        let fields = Validation.requestFields(client, validating: [stored(["ETag": "\"a\""])], selected: 0)
        #expect(fields == [client[0], HeaderField("If-None-Match", "\"a\"")])
        #expect(Validation.requestFields(client, validating: [], selected: nil) == [client[0]])
    }
}
