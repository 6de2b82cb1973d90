/// The permissions and prohibitions of the origin's and the client's directives, except lifetimes.
enum DirectiveExchanges {
    static var all: [Exchange] { storing + validating + client + pragma + credentials + targeted + surrogate }

    // MARK: no-store, private, no-cache, must-revalidate, immutable

    private static let storing: [Exchange] = [
        .refetched("private", .required, "9111 §5.2.2.7", ["Cache-Control": "private, max-age=3600"]),
        .refetched("no-store", .required, "9111 §5.2.2.5", ["Cache-Control": "no-store"]),
        .refetched("no-store in odd letter case", .required, "9111 §5.2.2.5", ["Cache-Control": "nO-StOrE"]),
        .refetched(
            "no-store beside max-age and Expires", .required, "9111 §5.2.2.5",
            ["Cache-Control": "max-age=10000, no-store", "Expires": .at(10_000)]),
        Exchange(
            "what was stored before a no-store came for it", .chosen, "9111 §5.2.2.5",
            Request(.fresh, ["Cache-Control": "max-age=10000", "ETag": "\"a\""]),
            .with(["Cache-Control": "no-cache"], .fresh, ["Cache-Control": "no-store"]),
            Request(.fresh, ["Cache-Control": "no-store"]) { $0.asksNot = ["if-none-match"] }),
        Exchange(
            "what was stored before a no-store came for it, max-age=0 beside it", .chosen, "9111 §5.2.2.5",
            Request(.fresh, ["Cache-Control": "max-age=10000"]),
            .with(["Cache-Control": "no-cache"], .fresh, ["Cache-Control": "no-store, max-age=0"]), Request(.fresh)),
        Exchange(
            "what is fresh goes before a no-store nobody asked for", .chosen, "9111 §4",
            Request(.fresh, ["Cache-Control": "max-age=10000", "A": "1"]),
            Request(.reused(1), ["Cache-Control": "no-store", "A": "2"]), Request(.reused(1))),
    ]

    private static let validating: [Exchange] =
        ["no-cache", "No-CaChE"].map {
            .refetched(
                "\($0) beside max-age and Expires", .required, "9111 §5.2.2.4",
                ["Cache-Control": "max-age=10000, \($0)", "Expires": .at(10_000)])
        }
        + [
            .confirmed(
                "no-cache with a tag", .optional, "9111 §5.2.2.4", ["Cache-Control": "no-cache", "ETag": "\"abcd\""]),
            .confirmed(
                "no-cache with a tag beside max-age and Expires", .optional, "9111 §5.2.2.4",
                ["Cache-Control": "max-age=10000, no-cache", "Expires": .at(10_000), "ETag": "\"abcd\""]),
            .reused(
                "no-cache of one field", .chosen, "9111 §5.2.2.4",
                ["Cache-Control": "no-cache=\"a\"", "a": "1", "b": "2", "Cache-Control": "max-age=3600"]
            ) { $0.hides = ["a"] },
            .reused(
                "no-cache of two fields", .chosen, "9111 §5.2.2.4",
                ["Cache-Control": "no-cache=\"a, b\"", "a": "1", "b": "2", "c": "3", "Cache-Control": "max-age=3600"]
            ) { $0.hides = ["a", "b"] },
            .reused(
                "must-revalidate while fresh", .optional, "9111 §5.2.2.2",
                ["Cache-Control": "max-age=10000, must-revalidate", "ETag": "\"abcd\""]),
            .confirmed(
                "must-revalidate when stale", .required, "9111 §5.2.2.2",
                ["Cache-Control": "max-age=2, must-revalidate", "ETag": "\"abcd\"", "Age": "10"]),
            .reused(
                "immutable while fresh, on a reload", .optional, "8246 §2",
                ["Cache-Control": "max-age=10000, immutable", "ETag": "\"abcd\""], then: ["Cache-Control": "max-age=0"]),
            .confirmed(
                "immutable when stale", .required, "8246 §2",
                ["Cache-Control": "max-age=2, immutable", "ETag": "\"abcd\"", "Age": "10"]),
        ]

    // MARK: The client's

    private static let lasting: OriginResponse = ["Cache-Control": "max-age=100000"]
    private static let short: OriginResponse = ["Cache-Control": "max-age=1500"]

    private static let client: [Exchange] = [
        .refetched(
            "the client wants nothing older than nothing", .optional, "9111 §5.2.1.1", lasting.with(["Age": "10"]),
            then: ["Cache-Control": "max-age=0"]),
        .refetched(
            "the client wants nothing older than a second", .optional, "9111 §5.2.1.1", lasting.with(["Age": "10"]),
            then: ["Cache-Control": "max-age=1"]),
        .refetched(
            "the client wants nothing older than ten minutes", .optional, "9111 §5.2.1.1",
            lasting.with(["Age": "1800"]),
            then: ["Cache-Control": "max-age=600"]),
        .reused(
            "the client takes what is stale", .optional, "9111 §5.2.1.2",
            ["Cache-Control": "max-age=1", "Age": "10"], then: ["Cache-Control": "max-stale=1000"]),
        .reused(
            "the client takes what came stale", .optional, "9111 §5.2.1.2", short.with(["Age": "2000"]),
            then: ["Cache-Control": "max-stale=1000"]),
        .refetched(
            "the client wants more freshness than there is", .optional, "9111 §5.2.1.3", short,
            then: ["Cache-Control": "min-fresh=2000"]),
        .refetched(
            "the client wants more freshness than is left", .optional, "9111 §5.2.1.3", short.with(["Age": "1000"]),
            then: ["Cache-Control": "min-fresh=1000"]),
        .refetched(
            "the client says no-cache", .optional, "9111 §5.2.1.4", ["Cache-Control": "max-age=3600"],
            then: ["Cache-Control": "no-cache"]),
        .confirmed(
            "the client says no-cache, there is a date", .optional, "9111 §5.2.1.4",
            ["Cache-Control": "max-age=3600", "Last-Modified": .at(-10_000)], then: ["Cache-Control": "no-cache"]),
        .confirmed(
            "the client says no-cache, there is a tag", .optional, "9111 §5.2.1.4",
            ["Cache-Control": "max-age=3600", "ETag": "\"abc\""], then: ["Cache-Control": "no-cache"]),
        .reused(
            "the client says no-store of what is stored", .chosen, "9111 §5.2.1.5", lasting,
            then: ["Cache-Control": "no-store"]),
        .refetched(
            "the client says no-store of what is not stored yet", .optional, "9111 §5.2.1.5", lasting,
            first: ["Cache-Control": "no-store"]),
        Exchange(
            "the client wants only what is stored, and nothing is", .optional, "9111 §5.2.1.7",
            .with(["Cache-Control": "only-if-cached"], .refused(504, asking: 0))),
    ]

    private static let pragma: [Exchange] = [
        .reused(
            "Pragma: no-cache of the client beside Cache-Control", .chosen, "9111 §5.4",
            ["Cache-Control": "max-age=3600"], then: ["Pragma": "some-extension, no-cache"]),
        .refetched(
            "Pragma: no-cache of the client alone", .chosen, "9111 §5.4", ["Cache-Control": "max-age=3600"],
            then: ["Pragma": "no-cache"]
        ) { $0.isBare = true },
        .reused(
            "a Pragma of the client that nobody knows", .chosen, "9111 §5.4", ["Cache-Control": "max-age=3600"],
            then: ["Pragma": "other-extension"]),
        .reused(
            "Pragma: no-cache of the origin", .chosen, "9111 §5.4",
            ["Cache-Control": "max-age=3600", "Pragma": "no-cache"]),
        .reused(
            "Pragma: no-cache of the origin and no explicit lifetime", .chosen, "9111 §5.4",
            ["Last-Modified": .at(-10_000), "Pragma": "no-cache"]),
        .reused(
            "a Pragma of the origin that nobody knows", .chosen, "9111 §5.4",
            ["Cache-Control": "max-age=3600", "Pragma": "other-extension"]),
    ]

    // MARK: Authorization

    private static func authorized(_ name: String, _ answer: OriginResponse, isReused: Bool) -> Exchange {
        Exchange(
            name, isReused ? .optional : .required, "9111 §3.5",
            .with(["Authorization": "FOO"], .fresh, answer) { $0.asks = ["Authorization": "FOO"] },
            Request(isReused ? .reused(1) : .fresh) { $0.asksNot = ["authorization"] })
    }

    private static let credentials: [Exchange] = [
        authorized("answered to credentials, Expires alone", ["Expires": .at(100_000)], isReused: false),
        authorized("answered to credentials, max-age alone", ["Cache-Control": "max-age=3600"], isReused: false),
        authorized("answered to credentials, public", ["Cache-Control": "max-age=3600, public"], isReused: true),
        authorized(
            "answered to credentials, must-revalidate", ["Cache-Control": "max-age=3600, must-revalidate"],
            isReused: true),
        authorized("answered to credentials, s-maxage", ["Cache-Control": "s-maxage=3600"], isReused: true),
    ]

    // MARK: CDN-Cache-Control

    private static let expiry: Lines = ["Cache-Control": "max-age=10000", "Expires": .at(10_000)]

    private static let targeted: [Exchange] =
        [
            .reused("targeted max-age", .optional, "9213 §2.2", ["CDN-Cache-Control": "max-age=3600"]),
            .reused("targeted max-age of 2³¹", .optional, "9213 §2.2", ["CDN-Cache-Control": "max-age=2147483648"]),
            .reused(
                "targeted max-age of 99999999999", .optional, "9213 §2.2", ["CDN-Cache-Control": "max-age=99999999999"]),
            .refetched(
                "arrived older than the targeted max-age", .required, "9213 §2.2",
                ["CDN-Cache-Control": "max-age=3600", "Age": "7200"]),
            .refetched("targeted max-age of nothing", .required, "9213 §2.2", ["CDN-Cache-Control": "max-age=0"]),
            .reused(
                "targeted max-age after an extension", .optional, "9213 §2.2",
                ["CDN-Cache-Control": "foobar, max-age=3600"]),
            .refetched(
                "targeted max-age in odd letter case", .chosen, "8941 §3.2", ["CDN-Cache-Control": "MaX-aGe=3600"]),
            .reused(
                "targeted max-age beside an Expires in the past", .optional, "9213 §2.2",
                ["CDN-Cache-Control": "max-age=3600", "Expires": .at(-10_000)]),
            .reused(
                "targeted max-age beside an Expires that is none", .optional, "9213 §2.2",
                ["CDN-Cache-Control": "max-age=3600", "Expires": "0"]),
            .refetched(
                "targeted max-age of nothing beside an Expires in the future", .required, "9213 §2.2",
                ["CDN-Cache-Control": "max-age=0", "Expires": .at(10_000)]),
            .reused(
                "targeted max-age that lasts beside one that is over", .optional, "9213 §2.2",
                ["Cache-Control": "max-age=1", "CDN-Cache-Control": "max-age=3600", "Age": "10"]),
            .refetched(
                "targeted max-age that is over beside one that lasts", .required, "9213 §2.2",
                ["Cache-Control": "max-age=3600", "CDN-Cache-Control": "max-age=1", "Age": "10"]),
            .reused(
                "targeted max-age beside no-store", .required, "9213 §2.2",
                ["Cache-Control": "no-store", "CDN-Cache-Control": "max-age=10000"]),
            .refetched(
                "a targeted field that is no dictionary, beside no-store", .required, "9213 §2.1",
                ["CDN-Cache-Control": "max-age=10000, &&&&&", "Cache-Control": "no-store"]),
            .refetched(
                "targeted seconds in quotes, beside no-store", .required, "9213 §2.1",
                ["CDN-Cache-Control": "max-age=\"10000\"", "Cache-Control": "no-store"]),
            Exchange(
                "the targeted field is passed on", .chosen, "9213 §2.2",
                Request(.fresh, OriginResponse().with(expiry).with(["CDN-Cache-Control": "foo"])) {
                    $0.shows = ["CDN-Cache-Control": "foo"]
                }),
            .reused(
                "used by the targeted lifetime, it shows Age, and Date and Expires as they came", .chosen, "9111 §5.1",
                ["Cache-Control": "max-age=1", "Expires": .at(1), "CDN-Cache-Control": "max-age=10000", "Age": "10"]
            ) {
                $0.age = 10
                $0.shows = ["Date": .at(0), "Expires": .at(1)]
            },
        ]
        + ["private", "no-cache", "no-store"].map {
            .refetched(
                "targeted \($0) beside max-age and Expires", .required, "9213 §2.2",
                OriginResponse().with(expiry).with(["CDN-Cache-Control": .text($0)]))
        }
        + ["max-age =100", "max-age= 100"].map {
            .refetched(
                "targeted and malformed: \($0)", .chosen, "9213 §2.1",
                ["Cache-Control": "max-age=1", "CDN-Cache-Control": .text($0), "Age": "10"])
        }

    // MARK: Surrogate-Control

    private static let note =
        "`Surrogate-Control`, a note from 2001 that no RFC adopted; `CachingConfiguration.targetedFields` can name it"

    private static let surrogate: [Exchange] = [
        .refetched("Surrogate-Control alone", .notDone(note), "9213", ["Surrogate-Control": "max-age=3600"]),
        .reused(
            "Surrogate-Control: max-age=0 beside max-age", .notDone(note), "9213",
            ["Surrogate-Control": "max-age=0", "Cache-Control": "max-age=3600"]),
        Exchange(
            "no Surrogate-Capability is claimed", .notDone(note), "9213",
            Request(.fresh) { $0.asksNot = ["surrogate-capability"] }),
    ]
}
