/// Answers past their lifetime: when the origin fails, meanwhile, and never.
enum StaleExchanges {
    static var all: [Exchange] { failing + limited + meanwhile + forbidden }

    private static let stale: OriginResponse = ["Cache-Control": "max-age=2", "Age": "10", "A": "1"]

    private static func past(_ directive: String) -> OriginResponse {
        ["Cache-Control": .text("max-age=2, \(directive)"), "Age": "10", "ETag": "\"abc\""]
    }

    private static func failed(
        _ name: String, _ weight: Exchange.Weight, _ clause: String, _ answer: OriginResponse,
        by failure: OriginResponse,
        sends: Lines = [:], _ outcome: Request.Outcome = .standsIn(1), _ change: (inout Request) -> Void = { _ in }
    ) -> Exchange {
        Exchange(name, weight, clause, Request(.fresh, answer), .with(sends, outcome, failure, change))
    }

    // MARK: When the origin fails

    private static let failing: [Exchange] =
        [
            failed("the origin breaks off", .chosen, "9111 §4.2.4", stale, by: .missing) { $0.age = 10 },
            failed(
                "no Warning is added to what became stale", .chosen, "9111 §5.5", stale, by: .missing
            ) { $0.hides = ["Warning"] },
            failed(
                "no Warning is added to what came stale", .chosen, "9111 §5.5",
                ["Expires": .at(-5000), "Last-Modified": .at(-100_000)], by: .missing
            ) { $0.hides = ["Warning"] },
            failed(
                "stale-if-error and the origin breaks off", .optional, "5861 §4", past("stale-if-error=60"),
                by: .missing),
        ]
        + [500, 502, 503, 504].map {
            failed("the origin answers \($0)", .chosen, "9111 §4.3.3", stale, by: OriginResponse($0))
        }
        + [500, 502, 503, 504].map {
            failed(
                "stale-if-error and the origin answers \($0)", .optional, "5861 §4", past("stale-if-error=60"),
                by: OriginResponse($0))
        }
        + [
            failed("the origin answers 404", .required, "9111 §4.3.3", stale, by: OriginResponse(404), .fresh),
            failed(
                "the client's stale-if-error and the origin answers 500", .optional, "5861 §4", stale,
                by: OriginResponse(500), sends: ["Cache-Control": "stale-if-error=3600"]),
        ]

    private static let limited: [Exchange] = [
        failed(
            "stale-if-error is over and the origin answers 500", .required, "5861 §4", past("stale-if-error=1"),
            by: OriginResponse(500), .fresh),
        failed(
            "stale-if-error is over and the origin breaks off", .chosen, "5861 §4", past("stale-if-error=1"),
            by: .missing, .refused(502, asking: 1)),
        failed(
            "the client's stale-if-error is over and the origin answers 500", .required, "5861 §4", stale,
            by: OriginResponse(500), sends: ["Cache-Control": "stale-if-error=1"], .fresh),
        failed(
            "the client's stale-if-error is over, the origin's is not", .chosen, "5861 §4", past("stale-if-error=60"),
            by: OriginResponse(500), sends: ["Cache-Control": "stale-if-error=1"]),
    ]

    // MARK: Meanwhile

    private static let meanwhile: [Exchange] = [
        Exchange(
            "stale-while-revalidate, and the origin has something new", .optional, "5861 §3",
            Request(
                .fresh, ["Cache-Control": "max-age=1, stale-while-revalidate=3600", "ETag": "\"abc\"", "Age": "10"]),
            Request(.reusedMeanwhile(1), ["Cache-Control": "max-age=3600", "ETag": "\"def\""]) { $0.age = 10 },
            Request(.reusedSoon(2)), Request(.reused(2)) { $0.shows = ["ETag": "\"def\""] }),
        Exchange(
            "stale-while-revalidate is over", .required, "5861 §3",
            Request(.fresh, ["Cache-Control": "max-age=1, stale-while-revalidate=4", "ETag": "\"abc\"", "Age": "10"]),
            Request(.fresh, ["Cache-Control": "no-cache", "ETag": "\"def\""]),
            Request(.confirmed(2), OriginResponse(304))),
    ]

    // MARK: Never

    private static let forbidden: [Exchange] =
        [
            "must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2",
            // Whatever else seems to permit it.
            "must-revalidate, stale-if-error=60", "s-maxage=2, stale-if-error=60",
        ].flatMap { directive in
            [
                failed(
                    "\(directive) and the origin breaks off", .required, "9111 §4.2.4", past(directive), by: .missing,
                    .refused(502, asking: 1)),
                failed(
                    "\(directive) and the origin answers 503", .required, "9111 §4.2.4", past(directive),
                    by: OriginResponse(503),
                    .fresh),
            ]
        }
        + [
            failed(
                "a stored 500 and the origin answers 503", .chosen, "9111 §4.2.4",
                OriginResponse(500, ["Cache-Control": "max-age=2", "Age": "10"]), by: OriginResponse(503), .fresh)
        ]
}
