/// HEAD, parts, methods that change things, and interim responses.
enum MethodExchanges {
    static var all: [Exchange] { heads + wholes + parts + unsafe + interim }

    // MARK: HEAD

    private static let stale: OriginResponse = ["Cache-Control": "max-age=2", "Age": "10", "A": "1"]

    private static func head(_ outcome: Request.Outcome, _ answer: OriginResponse = OriginResponse()) -> Request {
        Request(outcome, answer) { $0.method = "HEAD" }
    }

    private static let whole = "HEAD is sent as GET, so that one complete response serves both methods"

    private static let heads: [Exchange] = [
        Exchange(
            "HEAD of what is fresh", .optional, "9111 §4", Request(.fresh, ["Cache-Control": "max-age=3600"]),
            head(.reused(1))),
        Exchange(
            "what HEAD brought answers GET", .optional, "9111 §4", head(.fresh, ["Cache-Control": "max-age=3600"]),
            Request(.reused(1))),
        Exchange(
            "HEAD of what is stale gets all of the origin's answer, and so does the next GET", .notDone(whole),
            "9111 §4.3.5", Request(.fresh, stale), head(.fresh, ["A": "2", "Cache-Control": "max-age=1000"]),
            Request(.reused(2)) { $0.shows = ["A": "2"] }),
        Exchange(
            "HEAD of what is stale: the answer's fields alone are shown", .notDone(whole), "9111 §4.3.5",
            Request(.fresh, stale), head(.fresh, ["Cache-Control": "max-age=1000"]),
            Request(.reused(2)) { $0.hides = ["A"] }),
        Exchange(
            "HEAD of what is stale and now gone", .notDone(whole), "9111 §4.3.5", Request(.fresh, stale),
            head(.fresh, OriginResponse(410, ["A": "2", "Cache-Control": "max-age=1000"])),
            Request(.reused(2)) { $0.shows = ["A": "2"] }),
        Exchange(
            "HEAD of what is stale and has a tag", .optional, "9111 §4.3.1",
            Request(.fresh, ["Cache-Control": "max-age=2", "Age": "10", "ETag": "\"a\""]),
            head(.confirmed(1), OriginResponse(304, ["Cache-Control": "max-age=1000", "ETag": "\"a\""])),
            Request(.reused(1))),
    ]

    // MARK: Parts of what is whole

    private static let digits = OriginResponse(200, ["Cache-Control": "max-age=3600", "A": "1"], body: "01234567890")

    private static func part(
        _ name: String, _ weight: Exchange.Weight, _ clause: String, _ range: String, _ body: String,
        _ change: @escaping (inout Request) -> Void = { _ in }
    ) -> Exchange {
        .reused(name, weight, clause, digits, then: ["Range": .text("bytes=\(range)")]) { request in
            request.status = 206
            request.body = body
            change(&request)
        }
    }

    private static let wholes: [Exchange] = [
        part("first and last byte", .optional, "9110 §14.1.2", "0-1", "01") {
            $0.shows = ["Content-Range": "bytes 0-1/11"]
        },
        part("from a byte on", .optional, "9110 §14.1.2", "1-", "1234567890"),
        part("the last byte", .optional, "9110 §14.1.2", "-1", "0"),
        part("a part has the stored fields", .required, "9110 §15.3.7", "0-1", "01") { $0.shows = ["A": "1"] },
        .reused(
            "bytes that are not there", .required, "9110 §15.5.17", digits, then: ["Range": "bytes=20-"]
        ) {
            $0.status = 416
            $0.body = ""
            $0.shows = ["Content-Range": "bytes */11"]
        },
    ]

    // MARK: Parts of the origin

    private static let whyNoParts =
        "a 206 is forwarded, not stored or combined with others, because renders need complete originals"

    private static func received(_ name: String, then ranges: Lines) -> Exchange {
        let partial = OriginResponse(
            206, ["Cache-Control": "max-age=3600", "Content-Range": "bytes 4-8/10", "ETag": "\"a\""], body: "45678")
        return Exchange(
            name, .notDone(whyNoParts), "9111 §3.3",
            .with(["Range": "bytes=-5"], .fresh, partial) { $0.asks = ["Range": "bytes=-5"] },
            .with(ranges, .fresh, ranges.all.isEmpty ? digits : partial) {
                if ranges.all.isEmpty { $0.asksNot = ["range"] } else { $0.asks = ranges }
            })
    }

    private static let parts: [Exchange] = [
        received("a part, and the same part again", then: ["Range": "bytes=-5"]),
        received("a part, and some bytes of it", then: ["Range": "bytes=6-8"]),
        received("a part, and from one of its bytes on", then: ["Range": "bytes=6-"]),
        received("a part, and its last byte", then: ["Range": "bytes=-1"]),
        received("a part, and the whole", then: [:]),
        Exchange(
            "a part whose Content-Range does not fit its length", .notDone(whyNoParts), "9110 §15.3.7",
            .with(
                ["Range": "bytes=-5"], .fresh,
                OriginResponse(206, ["Cache-Control": "max-age=3600", "Content-Range": "bytes 4-9/10"], body: "56789"))),
        Exchange(
            "a range is passed on, and the whole answer to it is stored", .optional, "9111 §3.3",
            .with(["Range": "bytes=0-1"], .fresh, digits) {
                $0.asks = ["Range": "bytes=0-1"]
                $0.status = 206
                $0.body = "01"
            }, Request(.reused(1))),
    ]

    // MARK: What changes things

    private static let lasting: OriginResponse = ["Cache-Control": "max-age=100000"]

    private static func change(_ method: String, _ answer: OriginResponse = OriginResponse()) -> Request {
        Request(.fresh, answer) { $0.method = method }
    }

    private static func changing(_ method: String) -> [Exchange] {
        [
            Exchange(
                "\(method) that succeeds invalidates what is stored", .required, "9111 §4.4", Request(.fresh, lasting),
                change(method), Request(.fresh)),
            Exchange(
                "\(method) that fails leaves what is stored", .optional, "9111 §4.4", Request(.fresh, lasting),
                change(method, OriginResponse(500)), Request(.reused(1))),
            Exchange(
                "\(method) is answered by the origin each time", .required, "9110 §9.3", change(method, lasting),
                change(method, lasting), Request(.fresh)),
        ]
            + ["Location", "Content-Location"].flatMap { name in
                [
                    // Resolved at the exchange's own path.
                    Exchange(
                        "\(method) that answers with \(name) invalidates what that names", .optional, "9111 §4.4",
                        Request(.fresh, lasting) { $0.path = "?target" },
                        change(method, OriginResponse(200, Lines([(name, "?target")]))),
                        Request(.fresh) { $0.path = "?target" }),
                    Exchange(
                        "\(method) that answers with \(name) of another origin leaves what that names", .required,
                        "9111 §4.4", Request(.fresh, lasting) { $0.path = "?target" },
                        change(method, OriginResponse(200, Lines([(name, "http://other.invalid/?target")]))),
                        Request(.reused(1)) { $0.path = "?target" }),
                ]
            }
    }

    private static let unsafe: [Exchange] =
        ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"].flatMap(changing)
        + [
            Exchange(
                "POST that answers for a later GET", .optional, "9110 §9.3.3",
                change("POST", ["Expires": .at(100_000), "Content-Location": "?"]), Request(.fresh)),
            Exchange(
                "OPTIONS invalidates nothing", .required, "9111 §4.4", Request(.fresh, lasting), change("OPTIONS"),
                Request(.reused(1))),
        ]

    // MARK: Interim responses

    private static let hints = OriginResponse.Interim(
        status: 103, fields: ["Link": "</a.css>; rel=preload", "X-Hint": "early"])

    private static func early(_ interim: OriginResponse.Interim, _ name: String, _ weight: Exchange.Weight) -> Exchange
    {
        var answer: OriginResponse = ["Cache-Control": "max-age=100000"]
        answer.interim = [interim]
        return Exchange(
            name, weight, "9110 §15.2",
            Request(.fresh, answer) {
                $0.interim = [interim]
                $0.hides = ["X-Hint", "Link"]
            }, Request(.reused(1)) { $0.hides = ["X-Hint", "Link"] })
    }

    private static let interim: [Exchange] = [
        early(OriginResponse.Interim(status: 102), "102 is passed on, and what follows is stored", .optional),
        early(hints, "103 is passed on with its fields, and what follows is stored without", .optional),
        early(hints, "a reused answer has no 103 before it", .required),
    ]
}
