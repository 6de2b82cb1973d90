/// The statuses that are stored, with an explicit lifetime and by heuristic.
enum StatusExchanges {
    static var all: [Exchange] { explicit + conditional + understood + heuristic + guesses }

    private static let day = 86_400

    private static let explicit: [Exchange] = [
        200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599, 999,
    ].flatMap { status -> [Exchange] in
        [
            .reused(
                "a fresh \(status)", .optional, "9111 §3",
                OriginResponse(status, ["Cache-Control": "max-age=100000", "Location": "/else"])),
            .refetched(
                "a stale \(status)", .required, "9111 §4.2",
                OriginResponse(status, ["Expires": .at(-5000), "Last-Modified": .at(-100_000), "Location": "/else"])),
        ]
    }

    private static let conditional: [Exchange] = [412, 416].map {
        .refetched(
            "a \($0) that says how long it lasts", .chosen, "9111 §3",
            OriginResponse($0, ["Cache-Control": "max-age=100000"]))
    }

    private static let understood: [Exchange] = [
        .refetched(
            "must-understand and no-store, a status nobody knows", .required, "9111 §5.2.2.3",
            OriginResponse(599, ["Cache-Control": "max-age=3600, no-store, must-understand"])),
        .refetched(
            "must-understand, a status nobody knows", .required, "9111 §5.2.2.3",
            OriginResponse(599, ["Cache-Control": "max-age=3600, must-understand"])),
        .reused(
            "must-understand and no-store, a status everybody knows", .optional, "9111 §5.2.2.3",
            ["Cache-Control": "max-age=3600, no-store, must-understand"]),
    ]

    private static let heuristic: [Exchange] =
        [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].map {
            .reused(
                "a \($0) changed a day ago, without lifetime", .optional, "9111 §4.2.2",
                OriginResponse($0, ["Last-Modified": .at(-day)]))
        }
        + [201, 202, 302, 303, 307, 403, 500, 502, 503, 504, 599].map {
            .refetched(
                "a \($0) changed a day ago, without lifetime", .required, "9111 §4.2.2",
                OriginResponse($0, ["Last-Modified": .at(-day)]))
        }
        + [
            .reused(
                "a public 599 changed a day ago, without lifetime", .optional, "9111 §4.2.2",
                OriginResponse(599, ["Last-Modified": .at(-day), "Cache-Control": "public"])),
            .reused(
                "an attachment changed a day ago, without lifetime", .chosen, "9111 §4.2.2",
                ["Last-Modified": .at(-100_000), "Content-Disposition": "attachment; filename=a.txt"]),
            .reused(
                "an attachment with a lifetime", .chosen, "9111 §3",
                ["Cache-Control": "max-age=3600", "Content-Disposition": "attachment; filename=a.txt"]),
        ]

    /// A tenth of the time since the change, three seconds after the answer was made.
    private static let guesses: [Exchange] =
        [5, 10, 30].map {
            .confirmed(
                "changed \($0) seconds ago, three seconds old", .chosen, "9111 §4.2.2",
                ["Last-Modified": .at(-$0), "Age": "3"])
        }
        + [300, 600, 1200, 1800, 3600, day / 2, day].map {
            .reused(
                "changed \($0) seconds ago, three seconds old", .chosen, "9111 §4.2.2",
                ["Last-Modified": .at(-$0), "Age": "3"])
        }
}
