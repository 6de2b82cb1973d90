import HTTPCaching
import Testing

struct VariationTests {
    private func kept(_ vary: String, _ fields: [HeaderField]) -> StoredResponse? {
        var response = stored(["Vary": vary])
        guard let selecting = Variation.selectingFields(of: response.fields, requestFields: fields) else { return nil }
        response.selecting = selecting
        return response
    }

    /// RFC 9111 §4.1, `Variation.selects`: A request selects a response if every field that `Vary` names is unchanged.
    @Test func `a request selects when every listed field is as it was (RFC 9111 §4.1)`() throws {
        let response = try #require(kept("Accept, X-B", [HeaderField("accept", "a"), HeaderField("Accept", " b ")]))
        let expected: [String: String?] = ["accept": "a, b", "x-b": String?.none]
        #expect(response.selecting == expected)
        #expect(Variation.selects(response, requestFields: [HeaderField("ACCEPT", "a, b"), HeaderField("X-C", "1")]))
        #expect(!Variation.selects(response, requestFields: [HeaderField("Accept", "a")]))
        #expect(!Variation.selects(response, requestFields: []))
        let other = [HeaderField("Accept", "a, b"), HeaderField("X-B", "")]
        #expect(!Variation.selects(response, requestFields: other))
    }

    /// RFC 9111 §4.1, `Variation.selects`: Without `Vary`, every request selects the response.
    @Test func `without Vary every request selects; with a star anywhere none does (RFC 9111 §4.1)`() {
        #expect(Variation.selects(stored([:]), requestFields: [HeaderField("Accept", "x")]))
        #expect(kept("*", []) == nil && kept("Accept, *", []) == nil)
        #expect(!Variation.selects(stored(["Vary": "Accept", "vary": "*"]), requestFields: []))
    }

    /// RFC 9111 §4.1, `Variation.names`: No request selects a response with `*` in `Vary`.
    @Test(arguments: ["*", "*, *", ", *", "*, Foo", "Foo, *", " * "])
    func `a star anywhere never matches (RFC 9111 §4.1)`(vary: String) {
        #expect(Variation.names(in: [HeaderField("Vary", vary)]) == nil)
        #expect(Variation.names(in: [HeaderField("Vary", ""), HeaderField("vary", vary)]) == nil)
        #expect(!Variation.selects(stored(["Vary": vary]), requestFields: []))
    }

    /// Project rule, `Variation.maxNames`: More than a hundred names are treated as `*`.
    @Test func `more than a hundred names never match`() {
        let names = (0..<100).map { "x\($0)" }
        #expect(Variation.names(in: [HeaderField("Vary", names.joined(separator: ","))])?.count == 100)
        #expect(Variation.names(in: [HeaderField("Vary", (names + ["y"]).joined(separator: ","))]) == nil)
    }

    private func matches(_ name: String, _ then: String?, _ now: String?) -> Bool {
        let request = [then, now].map { value in value.map { [HeaderField(name, $0)] } ?? [] }
        guard let response = kept(name, request[0]) else { return false }
        return Variation.selects(response, requestFields: request[1])
    }

    /// RFC 9111 §4.1, `Variation.selects`: An absent field matches only an absent field, not an empty one.
    @Test func `an absent field matches only an absent one (RFC 9111 §4.1)`() {
        #expect(matches("Foo", nil, nil))
        #expect(!matches("Foo", nil, "1") && !matches("Foo", "1", nil))
        #expect(!matches("Foo", nil, "") && !matches("Foo", "", nil))
    }

    /// RFC 9110 §12.5.5, §5.1, `Variation.names`: Names are compared case-insensitively, values exactly.
    @Test func `names of fields compare in any case, values exactly (RFC 9110 §12.5.5, §5.1)`() {
        #expect(Variation.names(in: [HeaderField("VARY", "fOO, Bar, foo")]) == ["bar", "foo"])
        #expect(!matches("Foo", "a", "A"))
        #expect(!matches("Foo", "e\u{301}", "\u{e9}"))
    }

    /// RFC 9111 §4.1, `Variation.selectingFields`: In lists, white space around commas is ignored.
    @Test(arguments: [
        ("1,2", " 1, 2 "), ("1, 2", "1 ,2,"), ("1, 2", "1,\t2"), ("\"a,b\"", " \"a,b\" "),
    ])
    func `space around the commas of a list does not matter (RFC 9111 §4.1)`(then: String, now: String) {
        #expect(matches("Foo", then, now) && matches("Foo", now, then))
    }

    /// RFC 9111 §4.1, `Variation.selects`: Unknown fields are not normalized further.
    @Test(arguments: [("1,2", "2,1"), ("\"a, b\"", "\"a,b\""), ("1 2", "12"), ("1;q=1", "1")])
    func `of an unknown field nothing else is changed (RFC 9111 §4.1)`(then: String, now: String) {
        #expect(!matches("Foo", then, now))
    }

    /// RFC 9111 §4.1, `Variation.selects`: Outside lists, commas have no special meaning.
    @Test func `in fields that are no lists, commas are text (RFC 9111 §4.1)`() {
        #expect(!matches("User-Agent", "a (b, c)", "a (b,c)"))
        #expect(matches("User-Agent", "a (b, c)", " a (b, c) "))
    }

    /// RFC 9111 §4.1, `Variation.selects`: Lines of one field are combined.
    @Test func `lines of one field are combined (RFC 9111 §4.1)`() throws {
        let response = try #require(kept("Foo", [HeaderField("Foo", "1, 2")]))
        #expect(Variation.selects(response, requestFields: [HeaderField("Foo", "1"), HeaderField("foo", "2")]))
        #expect(!Variation.selects(response, requestFields: [HeaderField("Foo", "2"), HeaderField("foo", "1")]))
    }

    /// RFC 9111 §4.1, RFC 9110 §12.5, `Variation.selects`: Preferences (`Accept` and similar) match regardless of
    /// order, case and the notation of weights.
    @Test(arguments: [
        ("Accept-Language", "en, de", "de, en"), ("Accept-Language", "en, de", "eN, De"),
        ("Accept-Language", "en, de", " en ,   de"), ("Accept-Language", "en;q=1.0, de ; q=0.50", "de;Q=0.5, en"),
        ("Accept", "image/webp, */*;q=0.8", "*/*; q=0.80,IMAGE/webp"),
        ("Accept", "a/b;level=1;q=0", "A/B;level=1;q=0.000"),
        ("Accept-Encoding", "gzip, br;q=1.000", "br, GZIP"), ("Accept-Charset", "utf-8", "UTF-8"),
    ])
    func `preferences compare without order, case and ways to write a weight (RFC 9111 §4.1, RFC 9110 §12.5)`(
        name: String, then: String, now: String
    ) {
        #expect(matches(name, then, now) && matches(name, now, then))
    }

    /// RFC 9111 §4.1, `Variation.selects`: Different preferences do not match.
    @Test(arguments: [
        ("Accept-Language", "en, de", "fr;q=0.5, de;q=1.0"), ("Accept-Language", "en;q=0.5, de", "en, de;q=0.5"),
        ("Accept", "a/b;v=X", "a/b;v=x"), ("Accept", "a/b;v=\";\"", "a/b;v=\"; \""), ("Accept", "a/b;q=1.1", "a/b"),
        ("Accept", "a/b;q=0", "a/b"), ("Accept", "a/b;q=1.5", "a/b;q=1"), ("Accept", "a/b;q=0.55555", "a/b;q=0.5555"),
    ])
    func `other preferences do not match (RFC 9111 §4.1)`(name: String, then: String, now: String) {
        #expect(!matches(name, then, now) && !matches(name, now, then))
    }

    /// RFC 9111 §4.1, `Variation.selectingFields`: Fields that `Vary` does not name are ignored.
    @Test func `fields that Vary does not name do not matter (RFC 9111 §4.1)`() throws {
        let response = try #require(kept("Foo", [HeaderField("Foo", "1"), HeaderField("Other", "2")]))
        #expect(Variation.selects(response, requestFields: [HeaderField("Foo", "1"), HeaderField("Other", "3")]))
    }

    /// A response stored for a value of `Foo`, as old as that; `foo` nil: without `Vary`.
    private func variant(_ foo: String?, age: Int) -> StoredResponse {
        let date = HTTPDate.text(unixSeconds: Int(epoch) - age)
        var response = stored(foo == nil ? [:] : ["Vary": "Foo"], date: date)
        if let foo { response.selecting = ["foo": foo] }
        return response
    }

    /// RFC 9111 §4.1, `Variation.select`: The latest response by `Date`, then by arrival, is selected.
    @Test func `of several selected responses the most recent by Date is used (RFC 9111 §4.1)`() {
        let one = [HeaderField("Foo", "1")]
        let all = [variant("1", age: 30), variant("1", age: 10), variant("2", age: 0), variant("1", age: 20)]
        #expect(Variation.select(among: all, requestFields: one) == 1)
        #expect(Variation.select(among: all, requestFields: [HeaderField("Foo", "3")]) == nil)
        #expect(Variation.select(among: [], requestFields: one) == nil)
        var later = variant("1", age: 10)
        later.responseTime += 1
        #expect(Variation.select(among: [later, variant("1", age: 10)], requestFields: one) == 0)
    }

    /// RFC 9111 §4.1, `Variation.select`: A response with `Vary` takes precedence over a newer response without it.
    @Test func `a selected response with Vary comes before a newer one without (RFC 9111 §4.1)`() {
        let all = [variant("1", age: 30), variant(nil, age: 0)]
        #expect(Variation.select(among: all, requestFields: [HeaderField("Foo", "1")]) == 0)
        #expect(Variation.select(among: all, requestFields: [HeaderField("Foo", "2")]) == 1)
    }
}
