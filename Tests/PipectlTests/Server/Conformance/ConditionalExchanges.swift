/// Conditions of clients, and those made for the origin.
enum ConditionalExchanges {
    static var all: [Exchange] { tags + malformedTags + towardsOrigin + dates }

    private static func tagged(_ tag: String, _ more: Lines = [:]) -> OriginResponse {
        OriginResponse(200, ["Cache-Control": "max-age=100000", "ETag": .text(tag)]).with(more)
    }

    /// The second request is answered 304 of what is stored.
    private static func met(
        _ name: String, _ weight: Exchange.Weight, _ answer: OriginResponse, _ sends: Lines,
        _ change: (inout Request) -> Void = { _ in }
    ) -> Exchange {
        .reused(name, weight, "9111 §4.3.2", answer, then: sends) { request in
            request.status = 304
            change(&request)
        }
    }

    // MARK: Tags

    private static let tags: [Exchange] =
        [
            met("the client has it", .optional, tagged("\"abcdef\""), ["If-None-Match": "\"abcdef\""]),
            met("a 304 shows the tag", .required, tagged("\"abcdef\""), ["If-None-Match": "\"abcdef\""]) {
                $0.shows = ["ETag": "\"abcdef\""]
            },
            met(
                "the tag counts, not the date", .required, tagged("\"abcdef\"", ["Last-Modified": .at(-5000)]),
                ["If-None-Match": "\"abcdef\"", "If-Modified-Since": .at(-6000)]),
            .reused(
                "another tag counts, not the date", .required, "9110 §13.1.3",
                tagged("\"abcdef\"", ["Last-Modified": .at(-5000)]),
                then: ["If-None-Match": "\"other\"", "If-Modified-Since": .at(-1)]),
            met(
                "a tag with bytes beyond ASCII", .optional, tagged("\"abcdef\u{C3}\u{BC}\""),
                ["If-None-Match": "\"abcdef\u{C3}\u{BC}\""]
            ) { $0.shows = ["ETag": "\"abcdef\u{C3}\u{BC}\""] },
            met("a weak tag", .optional, tagged("W/\"abcdef\""), ["If-None-Match": "W/\"abcdef\""]),
            .reused(
                "the client has something else", .required, "9111 §4.3.2", tagged("\"abcdef\""),
                then: ["If-None-Match": "\"abc\""]),
        ]
        + [
            "\"abcdef\", \"1234\", \"5678\"", "\"1234\", \"abcdef\", \"5678\"", "\"1234\", \"5678\", \"abcdef\"",
        ].map { met("one of several: \($0)", .optional, tagged("\"abcdef\""), ["If-None-Match": .text($0)]) }

    private static let malformedTags: [Exchange] =
        ["abcdef", "w/\"abcdef\"", "W\\\"abcdef\"", "W\"abcdef\""].map {
            met("the same malformed tag: \($0)", .chosen, tagged($0), ["If-None-Match": .text($0)])
        }
        + [("\"abcdef\"", "abcdef"), ("abcdef", "\"abcdef\"")].map { stored, sent in
            .reused(
                "quoted on one side only: \(stored)", .chosen, "9110 §8.8.3", tagged(stored),
                then: ["If-None-Match": .text(sent)])
        }

    // MARK: Towards the origin

    private static func stale(_ tag: String) -> OriginResponse {
        ["Cache-Control": "max-age=2", "Age": "10", "ETag": .text(tag)]
    }

    private static func staleDigits(_ sends: Lines, _ change: (inout Request) -> Void) -> Exchange {
        .confirmed(
            "the client's \(sends.all[0].name) is not sent beside our tag", .optional, "9111 §4.3.2",
            OriginResponse(200, ["Cache-Control": "max-age=2", "Age": "10", "ETag": "\"abcdef\""], body: "0123456789"),
            then: sends, change)
    }

    private static let towardsOrigin: [Exchange] =
        ["\"abcdef\"", "W/\"abcdef\""].map { tag in
            .confirmed("asked about with its tag: \(tag)", .optional, "9111 §4.3.1", stale(tag)) {
                $0.asks = ["If-None-Match": .text(tag)]
            }
        }
        + [
            .confirmed("an unquoted tag is sent as it came", .chosen, "9111 §4.3.1", stale("abcdef")) {
                $0.asks = ["If-None-Match": "abcdef"]
            },
            .confirmed(
                "asked about with the fields it varies on", .required, "9111 §4.3.1",
                ["Expires": .at(1), "Age": "10", "ETag": "\"abcdef\"", "Vary": "Abc"], then: ["Abc": "123"],
                first: ["Abc": "123"]
            ) { $0.asks = ["Abc": "123"] },
            staleDigits(["If-None-Match": "\"other\""]) { $0.asks = ["If-None-Match": "\"abcdef\""] },
            staleDigits(["Range": "bytes=0-1"]) {
                $0.asksNot = ["range"]
                $0.status = 206
                $0.body = "01"
            },
            staleDigits(["If-Range": "\"other\"", "Range": "bytes=0-1"]) { $0.asksNot = ["range", "if-range"] },
            Exchange(
                "other variants are asked about with their tags", .optional, "9111 §4.3.1",
                .with(["Abc": "123"], .fresh, ["Expires": .at(10_000), "ETag": "\"abcdef\"", "Vary": "Abc"]),
                .with(["Abc": "456"], .fresh) { $0.asks = ["If-None-Match": "\"abcdef\""] }),
            Exchange(
                "another variant is confirmed", .optional, "9111 §4.3.1",
                .with(["Abc": "123"], .fresh, ["Expires": .at(10_000), "ETag": "\"abcdef\"", "Vary": "Abc"]),
                .with(
                    ["Abc": "456"], .confirmed(1),
                    OriginResponse(304, ["Expires": .at(10_000), "ETag": "\"abcdef\"", "Vary": "Abc"])),
                .with(["Abc": "456"], .reused(1)) { $0.shows = ["Answer": "2"] }),
        ]
        + ["\"abcdef\"", "abcdef"].map { tag in
            Exchange(
                "the client's tag is passed on where nothing is stored: \(tag)", .chosen, "9110 §13.1.2",
                .with(["If-None-Match": .text(tag)], .fresh) { $0.asks = ["If-None-Match": .text(tag)] })
        }

    // MARK: Dates

    private static let olderCopy = """
        without `Last-Modified`, `If-Modified-Since` before `Date` gets the response, because the client's copy is older
        """

    private static let dated: OriginResponse = ["Cache-Control": "max-age=100000", "Last-Modified": .at(-3000)]

    private static let dates: [Exchange] = [
        met("changed when the client has it", .optional, dated, ["If-Modified-Since": .at(-3000)]),
        met("changed before the client has it", .optional, dated, ["If-Modified-Since": .at(-2000)]),
        met(
            "changed when the client has it, as RFC 850 wrote it", .optional, dated,
            ["If-Modified-Since": .at850(-3000)]),
        .reused(
            "changed after the client has it", .required, "9111 §4.3.2", dated, then: ["If-Modified-Since": .at(-4000)]),
        .confirmed(
            "stale, and confirmed for a client that has it", .optional, "9111 §4.3.2",
            ["Cache-Control": "max-age=2", "Age": "10", "Last-Modified": .at(-3000)],
            then: ["If-Modified-Since": .at(-3000)]
        ) { $0.status = 304 },
        met(
            "made when the client has it, without a date of change", .optional, ["Cache-Control": "max-age=100000"],
            ["If-Modified-Since": .at(0)]),
        .reused(
            "made after the client has it, without a date of change",
            .notDone(olderCopy),
            "9111 §4.3.2", ["Cache-Control": "max-age=100000"], then: ["If-Modified-Since": .at(-3000)]),
    ]
}
