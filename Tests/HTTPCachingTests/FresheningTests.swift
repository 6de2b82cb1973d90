import HTTPCaching
import Testing

/// The effect of a 304 or a HEAD response on stored responses (RFC 9111 §3.2, §4.3.4, §4.3.5).
struct FresheningTests {
    private let modified = "Sat, 05 Nov 1994 08:49:37 GMT"

    private func tag(_ value: String?) -> [HeaderField] { value.map { [HeaderField("ETag", $0)] } ?? [] }

    // MARK: Identifying the responses

    private static let tags: [(own: String?, tag: String?, expected: Bool)] = [
        ("\"a\"", "\"a\"", true), ("\"a\"", "\"b\"", false), ("\"a\"", "W/\"a\"", true),
        ("W/\"a\"", "W/\"a\"", true), ("W/\"a\"", "\"a\"", false), ("\"a\"", nil, true), (nil, "\"a\"", false),
        ("abc", "abc", true),
    ]

    /// RFC 9111 §4.3.4, `Validation.identifies`: A strong tag must equal the stored strong tag; a weak tag is compared
    /// weakly.
    @Test(arguments: tags)
    func `a 304 speaks of the response with its validator (RFC 9111 §4.3.4)`(own: String?, tag: String?, expected: Bool)
    {
        var response = stored([:])
        response.fields += self.tag(own)
        #expect(Validation.identifies(response, notModified: self.tag(tag)) == expected)
    }

    /// RFC 9111 §4.3.4, `Validation.identified`: A strong tag identifies every response that has it.
    @Test func `a strong tag means every response that has it (RFC 9111 §4.3.4)`() {
        let all = [stored(["ETag": "\"a\""]), stored(["ETag": "\"b\""]), stored(["ETag": "\"a\""])]
        #expect(Validation.identified(among: all, notModified: tag("\"a\""), selected: 1) == [0, 2])
        #expect(Validation.identified(among: all, notModified: tag("\"c\""), selected: 1) == [])
    }

    /// RFC 9111 §4.3.4, `Validation.identified`: A weak tag or a date identifies the latest response that has it.
    @Test func `a weak tag or a date means the most recent that has it (RFC 9111 §4.3.4)`() {
        let later = "Mon, 07 Nov 1994 08:49:37 GMT"
        let all = [
            stored(["ETag": "W/\"a\"", "Last-Modified": modified]),
            stored(["ETag": "\"a\"", "Last-Modified": modified], date: later), stored(["ETag": "\"b\""], date: later),
        ]
        #expect(Validation.identified(among: all, notModified: tag("W/\"a\""), selected: 0) == [1])
        let date = [HeaderField("Last-Modified", modified)]
        #expect(Validation.identified(among: all, notModified: date, selected: 0) == [1])
        let other = [HeaderField("Last-Modified", later)]
        #expect(Validation.identified(among: all, notModified: other, selected: 0) == [])
    }

    /// RFC 9111 §4.3.4, `Validation.identified`: Choice: a 304 without validators identifies the validated response
    /// even if that has validators, because many origins omit them.
    @Test func `a 304 without validators speaks of the one validated (RFC 9111 §4.3.4)`() {
        let one = [stored(["ETag": "\"a\""])]
        #expect(Validation.identified(among: one, notModified: [], selected: 0) == [0])
        #expect(Validation.identified(among: [stored([:])], notModified: [], selected: 0) == [0])
        #expect(Validation.identified(among: one, notModified: [], selected: nil) == [0])
        let dated = [stored(["Last-Modified": modified]), stored(["ETag": "\"a\""])]
        #expect(Validation.identified(among: dated, notModified: [], selected: 0) == [0])
        #expect(Validation.identified(among: [stored([:])] + one, notModified: [], selected: 0) == [1])
        let same = [stored(["ETag": "\"a\""]), stored(["ETag": "\"a\""])]
        #expect(Validation.identified(among: same, notModified: [], selected: 1) == [1])
    }

    /// RFC 9111 §4.3.4, `Validation.identified`: If several tags were sent, a 304 without validators identifies no
    /// response, and an unconditional request follows.
    @Test func `a 304 without validators for several tags speaks of none (RFC 9111 §4.3.4)`() {
        let two = [stored(["ETag": "\"a\""]), stored(["ETag": "\"b\""])]
        #expect(Validation.identified(among: two, notModified: [], selected: 0) == [])
        #expect(Validation.identified(among: two, notModified: [], selected: nil) == [])
    }

    // MARK: Updating a response

    private func freshened(
        _ old: StoredResponse, by fields: KeyValuePairs<String, String>, after seconds: Double = 100,
        requestFields: [HeaderField]? = nil, configuration: CachingConfiguration = caching()
    ) -> StoredResponse {
        Validation.freshenedResponse(
            old, by: fields.map { HeaderField($0.key, $0.value) }, requestTime: epoch + seconds,
            responseTime: epoch + seconds, requestFields: requestFields, configuration: configuration)
    }

    /// RFC 9111 §3.2, `Validation.freshenedResponse`: Each field of a 304 replaces all stored lines with its name.
    @Test func `every field of a 304 replaces all stored lines of its name (RFC 9111 §3.2)`() {
        let old = stored(["ETag": "\"a\"", "X-Old": "1", "X-New": "a", "x-new": "b", "Content-Foo": "a"], date: nil)
        let new = freshened(old, by: ["Date": epochText, "X-NEW": "c", "x-new": "d", "Content-Foo": "b"])
        #expect(
            new.fields == [
                HeaderField("ETag", "\"a\""), HeaderField("X-Old", "1"), HeaderField("Date", epochText),
                HeaderField("X-NEW", "c"), HeaderField("x-new", "d"), HeaderField("Content-Foo", "b"),
            ])
    }

    /// RFC 9111 §3.2, `Validation.fieldsOfTheBody`: A 304 does not replace `Content-Length`.
    @Test func `a 304 does not change Content-Length (RFC 9111 §3.2)`() {
        let new = freshened(stored(["Content-Length": "9"]), by: ["content-length": "0"])
        #expect(new.fields.values(of: "content-length") == ["9"])
        #expect(freshened(stored([:]), by: ["Content-Length": "0"]).fields.first("content-length") == nil)
    }

    /// RFC 9111 §3.2, `Validation.fieldsOfTheBody`: Choice: a 304 does not replace `Content-Type`, `-Encoding` and
    /// `-Range`, because origins send defaults with it.
    @Test(arguments: ["Content-Type", "content-encoding", "Content-Range"])
    func `a 304 does not change the type, coding and range of the stored body (RFC 9111 §3.2)`(name: String) {
        let new = freshened(stored([:]).with(name, "a"), by: [name: "b"])
        #expect(new.fields.values(of: name) == ["a"])
        #expect(freshened(stored([:]), by: [name: "b"]).fields.first(name) == nil)
    }

    /// RFC 9111 §3.2, `Validation.freshenedResponse`: A 304 replaces every other `Content-…` field.
    @Test(arguments: ["Content-Location", "Content-MD5", "Content-Language", "Set-Cookie"])
    func `other fields named Content are changed like the rest (RFC 9111 §3.2)`(name: String) {
        let new = freshened(stored([:]).with(name, "a"), by: [name: "b"])
        #expect(new.fields.values(of: name) == ["b"])
    }

    /// RFC 9111 §3.2, §3.1, `Validation.freshenedResponse`: A 304 does not add or replace hop-by-hop fields.
    @Test func `fields of one connection do not come from a 304 (RFC 9111 §3.2, §3.1)`() {
        let new = freshened(stored(["X-Hop": "0"]), by: ["Connection": "X-Hop", "X-Hop": "1", "Keep-Alive": "5"])
        #expect(new.fields.map(\.name).sorted() == ["Date", "X-Hop"] && new.fields.first("x-hop") == "0")
    }

    /// RFC 9111 §5.2.2.7, `Validation.freshenedResponse`: A shared cache removes the fields that a 304 names in `private`.
    @Test func `what a 304 makes private is dropped in a shared cache (RFC 9111 §5.2.2.7)`() {
        let old = stored(["A": "1", "B": "2"])
        let new = freshened(old, by: ["Cache-Control": "private=\"a\", max-age=9", "Date": epochText])
        #expect(new.fields.map(\.name) == ["B", "Cache-Control", "Date"])
        let own = freshened(
            old, by: ["Cache-Control": "private=\"a\"", "Date": epochText], configuration: caching(isPrivate: true))
        #expect(own.fields.map(\.name) == ["A", "B", "Cache-Control", "Date"])
    }

    /// RFC 9111 §4.3.4, `Validation.freshenedResponse`: A 304 resets the age.
    @Test func `the age restarts with a 304 (RFC 9111 §4.3.4)`() {
        let old = stored(["Cache-Control": "max-age=60", "Age": "50"])
        let date = HTTPDate.text(unixSeconds: Int(epoch) + 100)
        let new = freshened(old, by: ["Date": date])
        #expect(Freshness.remaining(of: new, now: epoch + 110) == 50)
        let aged = freshened(old, by: ["Date": date, "Age": "5"])
        #expect(Freshness.remaining(of: aged, now: epoch + 110) == 45)
        var slow = Validation.freshenedResponse(old, by: [], requestTime: epoch + 90, responseTime: epoch + 100)
        #expect(Age.current(of: slow, now: epoch + 100) == 10)
        slow.fields = []
        #expect(slow.requestTime == epoch + 90 && slow.responseTime == epoch + 100)
    }

    /// RFC 9110 §6.6.1, `Validation.freshenedResponse`: For a 304 without `Date`, the time of arrival is used.
    @Test func `a 304 without Date gets the time it arrived (RFC 9110 §6.6.1)`() {
        let new = freshened(stored(["Cache-Control": "max-age=60"]), by: [:], after: 500)
        #expect(Freshness.remaining(of: new, now: epoch + 510) == 50)
        #expect(new.fields.values(of: "date") == [HTTPDate.text(unixSeconds: Int(epoch) + 500)])
    }

    /// RFC 9111 §4.1, §4.3.4, `Validation.freshenedResponse`: The selecting fields are updated from the request and the new
    /// `Vary`.
    @Test func `the selecting fields follow the request and the Vary of the 304 (RFC 9111 §4.1, §4.3.4)`() {
        var old = stored(["Vary": "Foo"])
        old.selecting = ["foo": "1"]
        let request = [HeaderField("Foo", "2"), HeaderField("Bar", "3")]
        #expect(freshened(old, by: [:], requestFields: request).selecting == ["foo": "2"])
        #expect(freshened(old, by: ["Vary": "Foo, Bar"], requestFields: request).selecting == ["foo": "2", "bar": "3"])
        #expect(freshened(old, by: ["Vary": "*"], requestFields: request).selecting == ["foo": "1"])
        #expect(freshened(old, by: [:]).selecting == ["foo": "1"])
    }

    /// RFC 9111 §5.2.2.5, `Storability.refusal`: A 304 can forbid storing the response that it freshens.
    @Test func `what a 304 says of storing is for Storability to judge (RFC 9111 §5.2.2.5)`() {
        let new = freshened(stored(["Cache-Control": "max-age=60"]), by: ["Cache-Control": "no-store"])
        #expect(Storability.refusal(response: new, requestFields: []) == .noStore)
    }
}
