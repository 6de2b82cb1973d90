/// How long answers last: `Cache-Control`, `Expires`, `Age` and `Date`, well written and not.
enum FreshnessExchanges {
    static var all: [Exchange] { control + controlSyntax + age + expires + expiresSyntax }

    private static let month = 30 * 86_400

    // MARK: max-age and s-maxage

    private static let control: [Exchange] =
        [
            .refetched("nothing said of freshness, no validator", .chosen, "9111 §4.2.2", [:]),
            .reused("max-age that lasts", .optional, "9111 §5.2.2.1", ["Cache-Control": "max-age=3600"]),
            .refetched("max-age that is over", .required, "9111 §4.2", ["Cache-Control": "max-age=2", "Age": "10"]),
            .refetched("max-age of nothing", .required, "9111 §4.2", ["Cache-Control": "max-age=0"]),
            .refetched("negative max-age", .required, "9111 §1.2.2", ["Cache-Control": "max-age=-3600"]),
            .refetched(
                "arrived older than max-age", .required, "9111 §4.2.3",
                ["Cache-Control": "max-age=3600", "Age": "7200", "Date": .at(0)]),
            .refetched(
                "made longer ago than max-age", .chosen, "9111 §4.2.3",
                ["Cache-Control": "max-age=3600", "Date": .at(-7200)]),
            .reused(
                "max-age beside an Expires in the past", .optional, "9111 §5.3",
                ["Cache-Control": "max-age=3600", "Expires": .at(-7200)]),
            .reused(
                "max-age beside an Expires that is none", .optional, "9111 §5.3",
                ["Cache-Control": "max-age=3600", "Expires": "0"]),
            .refetched(
                "max-age of nothing beside an Expires in the future", .required, "9111 §5.3",
                ["Cache-Control": "max-age=0", "Expires": .at(3600)]),
            .reused(
                "max-age after a directive nobody knows", .optional, "9111 §5.2.3",
                ["Cache-Control": "what-is-this, max-age=3600"]),
            .reused("max-age in odd letter case", .optional, "9111 §5.2", ["Cache-Control": "mAX-aGE=3600"]),
            .reused("s-maxage alone", .optional, "9111 §5.2.2.10", ["Cache-Control": "s-maxage=3600"]),
            .refetched(
                "max-age that lasts before s-maxage that is over", .required, "9111 §5.2.2.10",
                ["Cache-Control": "max-age=3600, s-maxage=1", "Age": "10"]),
            .refetched(
                "s-maxage that is over before max-age that lasts", .required, "9111 §5.2.2.10",
                ["Cache-Control": "s-maxage=1, max-age=3600", "Age": "10"]),
            .refetched(
                "max-age that lasts and s-maxage that is over on two lines", .required, "9111 §5.2.2.10",
                ["Cache-Control": "max-age=3600", "Cache-Control": "s-maxage=1", "Age": "10"]),
            .reused(
                "max-age that is over beside s-maxage that lasts", .optional, "9111 §5.2.2.10",
                ["Cache-Control": "max-age=1, s-maxage=3600", "Age": "10"]),
            .reused(
                "max-age of nothing and Expires in the past beside s-maxage that lasts", .optional, "9111 §5.2.2.10",
                ["Cache-Control": "max-age=0, s-maxage=3600", "Expires": .at(-10)]),
        ]
        + ["2147483647", "2147483648", "2147483649", "99999999999"].map {
            .reused("max-age of \($0) seconds", .optional, "9111 §1.2.2", ["Cache-Control": "max-age=\($0)"])
        }

    private static let controlSyntax: [Exchange] =
        [
            .reused("max-age in quotes", .chosen, "9111 §5.2", ["Cache-Control": "max-age=\"3600\""]),
            .reused("max-age with leading zeros", .required, "9111 §1.2.2", ["Cache-Control": "max-age=003600"]),
            .refetched(
                "max-age between apostrophes", .required, "9110 §5.6.2", ["Cache-Control": "max-age='3600'"]),
            .refetched(
                "max-age that lasts within another directive's quotes, before the real one", .required, "9110 §5.6.4",
                ["Cache-Control": "other=\"max-age=3600\", max-age=1", "Age": "10"]),
            .refetched(
                "max-age that lasts within another directive's quotes, after the real one", .required, "9110 §5.6.4",
                ["Cache-Control": "max-age=1, other=\"max-age=3600\"", "Age": "10"]),
        ]
        + ["1800, max-age=1", "1, max-age=1800"].map {
            .refetched(
                "two values in one line: \($0)", .chosen, "9111 §4.2.1",
                ["Cache-Control": "max-age=\($0)", "Age": "10"])
        }
        + [["1800", "1"], ["1", "1800"]].map { values in
            .refetched(
                "two values on two lines: \(values.joined(separator: ", "))", .chosen, "9111 §4.2.1",
                ["Cache-Control": "max-age=\(values[0])", "Cache-Control": "max-age=\(values[1])", "Age": "10"])
        }
        + ["max-age =3600", "max-age= 3600", "max-age=3600.0", "max-age=3600.5", "max-age=a3600", "max-age=3600a"].map {
            .refetched("malformed: \($0)", .chosen, "9111 §4.2.1", ["Cache-Control": .text($0)])
        }

    // MARK: Age

    /// Some arrive with a malformed Age, or with several.
    private static func aged(_ ages: [String], lasting seconds: Int = 3600) -> OriginResponse {
        OriginResponse(200, ["Cache-Control": "max-age=\(seconds)"])
            .with(Lines(ages.map { ("Age", .text($0)) }))
    }

    private static let age: [Exchange] =
        ["abc", "-7200", "7200.0"].map {
            .reused("Age that is no number of seconds: \($0)", .required, "9111 §5.1", aged([$0]))
        }
        + ["7200;foo=bar", "7200;foo=111"].map {
            .reused("Age with a parameter: \($0)", .chosen, "9111 §5.1", aged([$0]))
        }
        + ["2147483647", "2147483648", "2147483649"].map {
            .refetched("Age of \($0) seconds", .required, "9111 §1.2.2", aged([$0]))
        }
        + [["7200, 0"], ["7200", "0"]].map {
            .refetched("the first Age is too old: \($0)", .required, "9111 §5.1", aged($0))
        }
        + [["0, 7200"], ["0", "7200"], ["0, 0"], ["0", "0"]].map {
            .reused("the first Age is young: \($0)", .required, "9111 §5.1", aged($0))
        }
        + [
            .reused(
                "the same Age twice, young enough", .required, "9111 §5.1", aged(["3600", "3600"], lasting: 10_000))
        ]

    // MARK: Expires

    private static let expires: [Exchange] = [
        .reused("Expires in the future", .optional, "9111 §5.3", ["Expires": .at(month), "Date": .at(0)]),
        .refetched("Expires in the past", .required, "9111 §5.3", ["Expires": .at(-month), "Date": .at(0)]),
        .refetched("Expires now", .required, "9111 §4.2.1", ["Expires": .at(0), "Date": .at(0)]),
        .refetched(
            "Expires in the future, before Date", .required, "9111 §4.2.1", ["Expires": .at(300), "Date": .at(400)]),
        .refetched("Expires that is no date", .required, "9111 §5.3", ["Expires": "0", "Date": .at(0)]),
        .reused(
            "Expires in the future beside a Date that is none", .optional, "9110 §6.6.1",
            ["Date": "foo", "Expires": .at(100)]),
        .refetched(
            "arrived older than Expires allows, by a slow clock", .required, "9111 §4.2.3",
            ["Date": .at(-10), "Expires": .at(10), "Age": "25"]),
        .refetched(
            "arrived older than Expires allows, by a fast clock", .required, "9111 §4.2.3",
            ["Date": .at(10), "Expires": .at(20), "Age": "15"]),
    ]

    private static let expiresSyntax: [Exchange] =
        [
            ("the last second of 31 bits and some hours", "Tue, 19 Jan 2038 14:14:08 GMT"),
            ("far ahead", "Sun, 21 Nov 2286 04:46:39 GMT"),
            ("as RFC 850 has it", "Thursday, 18-Aug-50 02:01:18 GMT"),
            ("as asctime has it", "Thu Aug  8 02:01:18 2050"),
            ("a weekday in capitals", "THU, 18 Aug 2050 02:01:18 GMT"),
            ("a month in capitals", "Thu, 18 AUG 2050 02:01:18 GMT"),
            ("a zone in odd case", "Thu, 18 Aug 2050 02:01:18 gMT"),
        ].map { name, date in
            .reused("Expires in good form: \(name)", .optional, "9111 §4.2", ["Expires": .text(date), "Date": .at(0)])
        }
        + [
            ("UTC", "Thu, 18 Aug 2050 02:01:18 UTC"), ("another zone", "Thu, 18 Aug 2050 02:01:18 AEST"),
            ("a year of two digits", "Thu, 18 Aug 50 02:01:18 GMT"), ("no comma", "Thu 18 Aug 2050 02:01:18 GMT"),
            ("doubled spaces", "Thu, 18  Aug  2050 02:01:18 GMT"), ("dashes", "Thu, 18-Aug-2050 02:01:18 GMT"),
            ("full stops in the time", "Thu, 18 Aug 2050 02.01.18 GMT"),
            ("an hour of one digit", "Thu, 18 Aug 2050 2:01:18 GMT"),
        ].map { name, date in
            .refetched(
                "Expires in bad form: \(name)", .required, "9111 §4.2", ["Expires": .text(date), "Date": .at(0)])
        }
        + [
            .refetched(
                "Expires in bad form on two lines", .required, "9111 §5.3",
                ["Expires": "Thu, 18 Aug 2050 2:01:18 GMT", "Expires": "Thu, 18 Aug 2050 2:01:19 GMT"])
        ]
}
