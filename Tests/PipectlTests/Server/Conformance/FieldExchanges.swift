/// Fields that are stored, left out, changed by a 304, and made here.
enum FieldExchanges {
    static var all: [Exchange] { stored + dropped + freshened + own }

    /// End-to-end fields with two values each.
    private static let names: [(String, String, String)] = [
        ("Test-Header", "a", "b"), ("X-Test-Header", "a", "b"), ("Content-Foo", "a", "b"), ("X-Content-Foo", "a", "b"),
        ("Content-Encoding", "one", "two"), ("Content-Location", "/foo", "/bar"), ("Content-MD5", "aaaa==", "bbbb=="),
        ("Content-Range", "one", "two"), ("Content-Security-Policy", "default-src 'self'", "default-src 'none'"),
        ("Content-Type", "text/plain", "text/plain;charset=utf-8"), ("Content-Language", "en", "de"),
        ("Content-Disposition", "attachment; filename=a", "attachment; filename=b"),
        ("Clear-Site-Data", "\"cache\"", "\"cookies\""),
        ("Expires", "Fri, 01 Jan 2038 01:01:01 GMT", "Mon, 11 Jan 2038 11:11:11 GMT"), ("Public-Key-Pins", "a", "b"),
        ("Set-Cookie", "a=b", "a=c"), ("Set-Cookie2", "a=b", "a=c"), ("Server", "one", "two"), ("Link", "</a>", "</b>"),
        ("Strict-Transport-Security", "max-age=1", "max-age=2"), ("WWW-Authenticate", "Basic", "Digest"),
        ("X-Frame-Options", "deny", "sameorigin"), ("X-XSS-Protection", "1", "1; mode=block"),
        ("Warning", "199 a", "199 b"),
        ("Access-Control-Allow-Origin", "*", "null"), ("ETag", "\"abcdef\"", "\"ghijkl\""),
    ]

    /// Whether a 304 must change a field, or may leave it: fields that describe the body.
    private static func weight(_ name: String) -> Exchange.Weight {
        ["Content-Encoding", "Content-Type", "Content-Range"].contains(name) ? .chosen : .required
    }

    // MARK: Stored

    private static let stored: [Exchange] =
        names.map { name, value, _ in
            .reused(
                "\(name) is stored", .required, "9111 §3.1",
                OriginResponse(200, ["Cache-Control": "max-age=3600"]).with(Lines([(name, .text(value))]))
            ) { $0.shows = Lines([(name, .text(value))]) }
        }
        + [
            .reused(
                "Cache-Control is stored", .required, "9111 §3.1", ["Cache-Control": "max-age=3600, unheard-of=1"]
            ) { $0.shows = ["Cache-Control": "max-age=3600, unheard-of=1"] },
            .reused(
                "repeated fields are stored in order", .required, "9110 §5.3",
                [
                    "Cache-Control": "max-age=3600", "A": "2", "B": "x", "A": "1", "Set-Cookie": "a=1",
                    "Set-Cookie": "b=2",
                ]),
            Exchange(
                "a length is stored", .required, "9112 §6.3",
                Request(
                    .fresh,
                    OriginResponse(200, ["Cache-Control": "max-age=3600", "Content-Length": "6"], body: "123456")),
                Request(.reused(1)) { $0.shows = ["Content-Length": "6"] }),
            Exchange(
                "what came in chunks is stored whole", .required, "9112 §6.3",
                Request(
                    .fresh,
                    OriginResponse(
                        200, ["Cache-Control": "max-age=3600", "Transfer-Encoding": "chunked"],
                        body: "3\r\n123\r\n2\r\n45\r\n0\r\n\r\n")
                ) { $0.body = "12345" },
                Request(.reused(1)) {
                    $0.body = "12345"
                    $0.shows = ["Content-Length": "5"]
                    $0.hides = ["Transfer-Encoding"]
                }),
            Exchange(
                "what follows a body's length is no part of it", .required, "9112 §6.3",
                Request(
                    .fresh,
                    OriginResponse(200, ["Cache-Control": "max-age=3600", "Content-Length": "6"], body: "123456789")
                ) { $0.body = "123456" },
                Request(.reused(1)) {
                    $0.body = "123456"
                    $0.shows = ["Content-Length": "6"]
                }),
        ]

    private static let dropped: [Exchange] =
        [
            .reused(
                "what Connection names is not stored", .required, "9111 §3.1",
                ["Cache-Control": "max-age=100000", "Connection": "a, b", "a": "1", "b": "2", "c": "3"]
            ) {
                $0.shows = ["c": "3"]
                $0.hides = ["a", "b"]
            }
        ]
        + [
            "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
            "Proxy-Connection", "TE", "Upgrade",
        ].map { name in
            .reused(
                "\(name) is not stored", .required, "9111 §3.1",
                OriginResponse(200, ["Cache-Control": "max-age=3600"]).with(Lines([(name, "some-value")]))
            ) { if name != "Connection" { $0.hides = [name] } }
        }
        + [
            Exchange(
                "an answer in a coding of transfer nobody knows is refused", .chosen, "9112 §6.1",
                Request(
                    .refused(502, asking: 1), ["Cache-Control": "max-age=3600", "Transfer-Encoding": "some-value"]))
        ]

    // MARK: Changed by a 304

    private static let freshened: [Exchange] =
        [
            .confirmed(
                "a field that the 304 leaves out stays", .required, "9111 §3.2",
                [
                    "Cache-Control": "max-age=2", "Age": "10", "Last-Modified": "Wed, 01 Jan 2020 00:00:00 GMT",
                    "Test-Header": "a",
                ], by: ["Last-Modified": "Wed, 01 Jan 2020 00:00:00 GMT"]
            ) { $0.shows = ["Test-Header": "a"] },
            Exchange(
                "a 304 changes Cache-Control", .required, "9111 §3.2",
                Request(.fresh, ["Cache-Control": "max-age=1", "Age": "10", "ETag": "\"a\""]),
                Request(.confirmed(1), OriginResponse(304, ["Cache-Control": "max-age=3600", "ETag": "\"a\""])),
                Request(.reused(1)) { $0.shows = ["Cache-Control": "max-age=3600"] }),
            Exchange(
                "a 304 does not change Content-Length", .required, "9111 §3.2",
                Request(
                    .fresh,
                    OriginResponse(
                        200,
                        ["Cache-Control": "max-age=2", "Age": "10", "ETag": "\"a\"", "Content-Length": "5"],
                        body: "12345")),
                Request(
                    .confirmed(1),
                    OriginResponse(304, ["Cache-Control": "max-age=3600", "ETag": "\"a\"", "Content-Length": "10"])
                ) { $0.shows = ["Content-Length": "5"] },
                Request(.reused(1)) { $0.shows = ["Content-Length": "5"] }),
        ]
        + names.filter { $0.0 != "ETag" }.map { name, value, other in
            let stays = weight(name) == .chosen
            let shown = Lines([(name, .text(stays ? value : other))])
            return Exchange(
                "a 304 \(stays ? "does not change" : "changes") \(name)", weight(name), "9111 §3.2",
                Request(
                    .fresh,
                    OriginResponse(200, ["Cache-Control": "max-age=2", "Age": "10", "ETag": "\"a\""])
                        .with(Lines([(name, .text(value))]))),
                Request(
                    .confirmed(1),
                    OriginResponse(304, ["Cache-Control": "max-age=3600", "ETag": "\"a\""]).with(
                        Lines([(name, .text(other))]))
                ) { $0.shows = shown },
                Request(.reused(1)) { $0.shows = shown })
        }
        + [
            Exchange(
                "a 304 with another tag is of nothing that is stored", .required, "9111 §4.3.4",
                Request(.fresh, ["Cache-Control": "max-age=2, must-revalidate", "Age": "10", "ETag": "\"a\""]),
                Request(.refused(502, asking: 2), OriginResponse(304, ["ETag": "\"other\""])))
        ]

    // MARK: Made here

    private static let own: [Exchange] = [
        .reused(
            "Age is made, from Date", .required, "9111 §5.1", ["Cache-Control": "max-age=100000", "Date": .at(-30)]
        ) { $0.age = 30 },
        Exchange(
            "what is not reused has no Age of ours", .chosen, "9111 §5.1",
            Request(.fresh, ["Cache-Control": "max-age=3600", "Date": .at(-30)]) { $0.hides = ["Age"] }),
        .reused(
            "a received Age counts on, with Expires", .required, "9111 §5.1", ["Expires": .at(100_000), "Age": "30"]
        ) { $0.age = 30 },
        .reused(
            "a received Age counts on, with max-age", .required, "9111 §5.1",
            ["Cache-Control": "max-age=100000", "Age": "30", "Date": .at(-40)]
        ) { $0.age = 40 },
        .reused(
            "Date stays, with max-age", .required, "9110 §6.6.1",
            ["Cache-Control": "max-age=100000", "Date": .at(-100)]
        ) { $0.shows = ["Date": .at(-100)] },
        .reused(
            "Date and Expires stay, with Expires", .required, "9110 §6.6.1",
            ["Expires": .at(100_000), "Date": .at(-100)]
        ) { $0.shows = ["Date": .at(-100), "Expires": .at(100_000)] },
    ]
}
