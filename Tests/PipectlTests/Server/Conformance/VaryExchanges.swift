/// The requests that a response may be reused for.
enum VaryExchanges {
    static var all: [Exchange] { selecting + normalized + stars + addresses }

    private static func varying(_ names: String) -> OriginResponse {
        ["Cache-Control": "max-age=5000", "Last-Modified": .at(-3000), "Vary": .text(names)]
    }

    private static let two: Lines = ["Foo": "1", "Bar": "abc"]
    private static let three: Lines = ["Foo": "1", "Bar": "abc", "Baz": "789"]

    private static let selecting: [Exchange] = [
        .reused("the same value", .optional, "9111 §4.1", varying("Foo"), then: ["Foo": "1"], first: ["Foo": "1"]),
        .refetched("another value", .required, "9111 §4.1", varying("Foo"), then: ["Foo": "2"], first: ["Foo": "1"]),
        .refetched("a value where there was none", .required, "9111 §4.1", varying("Foo"), then: ["Foo": "1"]),
        .refetched("no value where there was one", .required, "9111 §4.1", varying("Foo"), first: ["Foo": "1"]),
        Exchange(
            "two variants are kept", .optional, "9111 §4.1", .with(["Foo": "1"], .fresh, varying("Foo")),
            .with(["Foo": "2"], .fresh, varying("Foo")), .with(["Foo": "1"], .reused(1)),
            .with(["Foo": "2"], .reused(2))),
        .reused(
            "a field Vary does not name", .optional, "9111 §4.1", varying("Foo"), then: ["Foo": "1", "Other": "3"],
            first: ["Foo": "1", "Other": "2"]),
        .reused("the same two values", .optional, "9111 §4.1", varying("Foo, Bar"), then: two, first: two),
        .refetched(
            "another of two values", .required, "9111 §4.1", varying("Foo, Bar"), then: ["Foo": "2", "Bar": "abc"],
            first: two),
        .refetched("none of two values", .required, "9111 §4.1", varying("Foo, Bar"), first: two),
        .reused("the same three values", .optional, "9111 §4.1", varying("Foo, Bar, Baz"), then: three, first: three),
        .refetched(
            "another of three values", .required, "9111 §4.1", varying("Foo, Bar, Baz"),
            then: ["Foo": "2", "Bar": "abc", "Baz": "789"], first: three),
        .refetched(
            "another of three values, in another order", .required, "9111 §4.1", varying("Foo, Bar, Baz"),
            then: ["Foo": "1", "Baz": "789", "Bar": "abcde"], first: three),
        .reused(
            "the same two of three values, one absent both times", .optional, "9111 §4.1", varying("Foo, Bar, Baz"),
            then: ["Foo": "1", "Baz": "789"], first: ["Foo": "1", "Baz": "789"]),
    ]

    private static let guess = """
        the origin's choice for different preferences is not guessed, because §4.1 permits matching by normalization \
        only
        """

    private static let normalized: [Exchange] = [
        .reused(
            "two lines for a list of two", .optional, "9111 §4.1", varying("Foo"), then: ["Foo": "1", "Foo": "2"],
            first: ["Foo": "1, 2"]),
        .reused(
            "spaces in and around an unknown list", .optional, "9111 §4.1", varying("Foo"), then: ["Foo": " 1, 2 "],
            first: ["Foo": "1,2"]),
        .reused(
            "languages in another order", .optional, "9111 §4.1", varying("Accept-Language"),
            then: ["Accept-Language": "de, en"], first: ["Accept-Language": "en, de"]),
        .reused(
            "languages in another case", .optional, "9111 §4.1", varying("Accept-Language"),
            then: ["Accept-Language": "eN, De"], first: ["Accept-Language": "en, de"]),
        .reused(
            "spaces among languages", .optional, "9111 §4.1", varying("Accept-Language"),
            then: ["Accept-Language": " en ,   de"], first: ["Accept-Language": "en, de"]),
        .refetched(
            "other languages of which the stored one is the best", .notDone(guess), "9111 §4.1",
            varying("Accept-Language").with(["Content-Language": "de"]),
            then: ["Accept-Language": "fr;q=0.5, de;q=1.0"], first: ["Accept-Language": "en, de"]),
    ]

    private static let stars: [Exchange] = [["*"], ["*, *"], ["*", "*"], [", *"], ["", "*"], ["*, Foo"], ["Foo, *"]].map
    {
        .refetched(
            "a star: \($0)", .required, "9111 §4.1",
            OriginResponse(200, ["Cache-Control": "max-age=5000", "Last-Modified": .at(-3000)])
                .with(Lines($0.map { ("Vary", .text($0)) })),
            then: ["Foo": "1", "Baz": "789"], first: ["Foo": "1", "Baz": "789"])
    }

    private static func asked(_ path: String, _ outcome: Request.Outcome) -> Request {
        Request(outcome, ["Cache-Control": "max-age=3600"]) { $0.path = path }
    }

    private static let addresses: [Exchange] = [
        Exchange("another query", .required, "9111 §2", asked("?a=1", .fresh), asked("?a=2", .fresh)),
        Exchange("the same query", .optional, "9111 §2", asked("?a=1", .fresh), asked("?a=1", .reused(1))),
        Exchange(
            "the same query, without lifetime", .optional, "9111 §4.2.2",
            Request(.fresh, ["Last-Modified": .at(-86_400)]) { $0.path = "?a=1" }, asked("?a=1", .reused(1))),
        Exchange("another path", .required, "9111 §2", asked("/a", .fresh), asked("/A", .fresh)),
        .reused(
            "answers that set cookies", .optional, "9111 §7.3", ["Cache-Control": "max-age=3600", "Set-Cookie": "a=b"]),
        .reused(
            "requests with cookies", .optional, "9111 §7.3", ["Cache-Control": "max-age=3600"], then: ["Cookie": "a=b"]),
    ]
}
