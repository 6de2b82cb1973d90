import HTTPCaching
import Testing

struct PreconditionsTests {
    private let earlier = "Sat, 05 Nov 1994 08:49:37 GMT"
    private let later = "Mon, 07 Nov 1994 08:49:37 GMT"

    private func outcome(
        _ request: KeyValuePairs<String, String>, _ response: StoredResponse, isOrigin: Bool = false
    ) -> Preconditions.Outcome {
        let fields = request.map { HeaderField($0.key, $0.value) }
        return Preconditions.evaluate(requestFields: fields, response: response, isOrigin: isOrigin)
    }

    private static let tags: [(condition: String, tag: String, expected: Preconditions.Outcome)] = [
        ("\"a\"", "\"a\"", .notModified), ("\"b\"", "\"a\"", .proceed), ("W/\"a\"", "\"a\"", .notModified),
        ("\"a\"", "W/\"a\"", .notModified), ("W/\"a\"", "W/\"a\"", .notModified),
        ("\"x\", \"a\", \"y\"", "\"a\"", .notModified), ("\"a\",\"y\"", "\"a\"", .notModified),
        ("\"y\" , W/\"a\"", "\"a\"", .notModified), ("\"a,b\"", "\"a,b\"", .notModified),
        ("\"a,b\"", "\"b\"", .proceed),
        ("\"a\\\", \"b\"", "\"b\"", .notModified), ("\"A\"", "\"a\"", .proceed), ("", "\"a\"", .proceed),
        ("a", "\"a\"", .proceed), ("a", "a", .notModified), ("*, \"b\"", "\"a\"", .proceed),
    ]

    /// RFC 9110 §13.1.2, §8.8.3.2, `Preconditions.evaluate`: Each member of `If-None-Match` is compared weakly; a
    /// backslash is not an escape.
    @Test(arguments: tags)
    func `If-None-Match compares weakly with each tag of its list (RFC 9110 §13.1.2, §8.8.3.2)`(
        condition: String, tag: String, expected: Preconditions.Outcome
    ) {
        #expect(outcome(["If-None-Match": condition], stored(["ETag": tag])) == expected)
    }

    /// RFC 9110 §13.1.2, `Preconditions.evaluate`: `If-None-Match: *` matches any response.
    @Test func `a star in If-None-Match matches whatever there is (RFC 9110 §13.1.2)`() {
        #expect(outcome(["If-None-Match": " * "], stored([:])) == .notModified)
        #expect(outcome(["If-None-Match": "\"a\""], stored([:])) == .proceed)
    }

    /// RFC 9110 §5.3, `Preconditions.evaluate`: Several `If-None-Match` lines form one list.
    @Test func `several If-None-Match lines are one list (RFC 9110 §5.3)`() {
        let response = stored(["ETag": "\"b\""])
        #expect(outcome(["If-None-Match": "\"a\"", "if-none-match": "\"b\""], response) == .notModified)
    }

    /// RFC 9110 §13.1.3, `Preconditions.evaluate`: `If-None-Match` overrides `If-Modified-Since`.
    @Test func `If-Modified-Since is not looked at next to If-None-Match (RFC 9110 §13.1.3)`() {
        let response = stored(["ETag": "\"a\"", "Last-Modified": earlier])
        #expect(outcome(["If-None-Match": "\"b\"", "If-Modified-Since": later], response) == .proceed)
        #expect(outcome(["If-None-Match": "\"a\"", "If-Modified-Since": "x"], response) == .notModified)
    }

    /// RFC 9111 §4.3.2, `Preconditions.evaluate`: `If-Modified-Since` leads to a 304 unless `Last-Modified` is later.
    @Test func `If-Modified-Since is met by a Last-Modified that is not later (RFC 9111 §4.3.2)`() {
        let response = stored(["Last-Modified": epochText], date: later)
        #expect(outcome(["If-Modified-Since": epochText], response) == .notModified)
        #expect(outcome(["If-Modified-Since": later], response) == .notModified)
        #expect(outcome(["If-Modified-Since": earlier], response) == .proceed)
        #expect(outcome(["If-Modified-Since": "Sunday, 06-Nov-94 08:49:37 GMT"], response) == .notModified)
    }

    /// RFC 9111 §4.3.2, `Preconditions.evaluate`: Without `Last-Modified`, `Date` is compared; without either, the time
    /// of arrival.
    @Test func `without Last-Modified the Date counts, without that the arrival (RFC 9111 §4.3.2)`() {
        #expect(outcome(["If-Modified-Since": epochText], stored([:])) == .notModified)
        #expect(outcome(["If-Modified-Since": earlier], stored([:])) == .proceed)
        #expect(outcome(["If-Modified-Since": epochText], stored([:], date: nil)) == .notModified)
        #expect(outcome(["If-Modified-Since": earlier], stored([:], date: nil)) == .proceed)
        #expect(outcome(["If-Modified-Since": earlier], stored(["Last-Modified": "x"], date: earlier)) == .notModified)
    }

    /// RFC 9110 §13.1.3, `Preconditions.evaluate`: `If-Modified-Since` is ignored unless it is a single date.
    @Test func `an If-Modified-Since that is no single date is ignored (RFC 9110 §13.1.3)`() {
        let response = stored(["Last-Modified": earlier])
        #expect(outcome(["If-Modified-Since": "tomorrow"], response) == .proceed)
        #expect(outcome(["If-Modified-Since": later, "if-modified-since": later], response) == .proceed)
    }

    /// RFC 9110 §13.2.1, `Preconditions.evaluate`: Conditions apply to successful responses only.
    @Test(arguments: [301, 404, 500])
    func `conditions count only where the answer would be a success (RFC 9110 §13.2.1)`(status: Int) {
        let response = stored(["ETag": "\"a\""], status: status)
        #expect(outcome(["If-None-Match": "\"a\""], response) == .proceed)
        #expect(outcome(["If-Match": "\"b\""], response, isOrigin: true) == .proceed)
    }

    /// RFC 9110 §13.1.1, §13.1.4, `Preconditions.evaluate`: A cache leaves `If-Match` and `If-Unmodified-Since` to the
    /// origin.
    @Test func `a cache leaves If-Match and If-Unmodified-Since to the origin (RFC 9110 §13.1.1, §13.1.4)`() {
        let response = stored(["ETag": "\"a\"", "Last-Modified": epochText])
        #expect(outcome(["If-Match": "\"b\""], response) == .proceed)
        #expect(outcome(["If-Unmodified-Since": earlier], response) == .proceed)
    }

    /// RFC 9110 §13.1.1, §13.2.2, `Preconditions.evaluate`: For the server's own responses, `If-Match` is compared
    /// strongly, before other conditions.
    @Test func `for our own responses If-Match compares strongly, before all else (RFC 9110 §13.1.1, §13.2.2)`() {
        let response = stored(["ETag": "\"a\""])
        #expect(outcome(["If-Match": "\"b\", \"a\""], response, isOrigin: true) == .proceed)
        #expect(outcome(["If-Match": "*"], response, isOrigin: true) == .proceed)
        #expect(outcome(["If-Match": "W/\"a\""], response, isOrigin: true) == .preconditionFailed)
        #expect(outcome(["If-Match": "\"b\"", "If-None-Match": "*"], response, isOrigin: true) == .preconditionFailed)
        #expect(outcome(["If-Match": "\"a\"", "If-None-Match": "*"], response, isOrigin: true) == .notModified)
        #expect(outcome(["If-Match": "W/\"a\""], stored(["ETag": "W/\"a\""]), isOrigin: true) == .preconditionFailed)
    }

    /// RFC 9110 §13.1.4, `Preconditions.evaluate`: For the server's own responses, `If-Unmodified-Since` fails after a
    /// later modification.
    @Test func `for our own responses If-Unmodified-Since fails on a later change (RFC 9110 §13.1.4)`() {
        let response = stored(["ETag": "\"a\"", "Last-Modified": epochText])
        #expect(outcome(["If-Unmodified-Since": earlier], response, isOrigin: true) == .preconditionFailed)
        #expect(outcome(["If-Unmodified-Since": epochText], response, isOrigin: true) == .proceed)
        #expect(outcome(["If-Unmodified-Since": "x"], response, isOrigin: true) == .proceed)
        #expect(outcome(["If-Match": "\"a\"", "If-Unmodified-Since": earlier], response, isOrigin: true) == .proceed)
        #expect(outcome(["If-Unmodified-Since": earlier], stored([:]), isOrigin: true) == .proceed)
    }

    /// RFC 9110 §15.4.5, `Preconditions.notModifiedFields`: A 304 has the required fields, but none that describe a
    /// body.
    @Test func `a 304 carries what it must and nothing of the body (RFC 9110 §15.4.5)`() {
        let names = ["Content-Location", "Date", "ETag", "Vary", "Cache-Control", "Expires", "Set-Cookie", "X-Own"]
        let body = [
            "Content-Type", "Content-Encoding", "Content-Language", "Content-Length", "Content-Range", "Last-Modified",
        ]
        let kept = Preconditions.notModifiedFields((names + body).map { HeaderField($0, "v") })
        #expect(kept.map(\.name) == names)
        let untagged = [HeaderField("last-modified", epochText), HeaderField("content-TYPE", "a/b")]
        #expect(Preconditions.notModifiedFields(untagged) == [untagged[0]])
    }

    /// RFC 9110 §8.8.3, `EntityTag.matchesWeakly`: A malformed tag matches only the identical string, and only weakly.
    @Test func `entity tags know weak, strong and malformed (RFC 9110 §8.8.3)`() {
        #expect(!EntityTag("\"a\"").isWeak && EntityTag("W/\"a\"").isWeak && EntityTag("a").isWeak)
        #expect(EntityTag("w/\"a\"").isWeak && !EntityTag("w/\"a\"").matchesWeakly(EntityTag("\"a\"")))
        #expect(EntityTag("\"\"").opaque == "\"\"" && !EntityTag("\"\"").isWeak)
        #expect(EntityTag("\"a b\"").isWeak && EntityTag("\"").isWeak)
        #expect(!EntityTag("\"e\u{301}\"").matchesWeakly(EntityTag("\"\u{e9}\"")))
        #expect(EntityTag.list(",\"a\",, W/\"b\" ").map(\.description) == ["\"a\"", "W/\"b\""])
    }
}
