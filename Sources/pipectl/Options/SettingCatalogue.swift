import Variants

/// One setting: its name, the values it takes, its default, and the reason for that default.
struct Setting: Sendable {
    var key: String
    var kind: SettingKind
    var fallback: SettingValue
    var reason: String
    /// Whether the value must never appear in messages.
    var isSecret = false
    /// Where a different default applies, and why; nil if nowhere.
    var departure: String?

    init(
        _ key: String, _ kind: SettingKind, _ fallback: SettingValue, _ reason: String, isSecret: Bool = false,
        departure: String? = nil
    ) {
        self.key = key
        self.kind = kind
        self.fallback = fallback
        self.reason = reason
        self.isSecret = isSecret
        self.departure = departure
    }

    /// `fetch.perHost` → `PIPECTL_FETCH_PER_HOST`.
    var environmentName: String {
        var name = "PIPECTL_"
        for character in key {
            if character == "." {
                name += "_"
            } else {
                if character.isUppercase { name += "_" }
                name += character.uppercased()
            }
        }
        return name
    }
}

/// Every setting there is. To add one, add a line here and, if needed, an accessor in `Settings`.
enum SettingCatalogue {
    private static let positive = SettingKind.integer(1...Int.max)
    private static let seconds = SettingKind.number(0.001...1e9)
    private static let maximumAge = SettingKind.number(0...2_147_483_648)

    static let all: [Setting] = general + sourcesAndFetching + caching + rendering + serving

    private static let general: [Setting] = [
        Setting(
            "cache", .text, .string(""),
            "cache folder; empty: $XDG_CACHE_HOME/image-pipeline or ~/.cache/image-pipeline"),
        Setting("presets", .map, .map([]), "name → recipe, used as @name; none are built in"),
        Setting("masks", .text, .string(""), "folder of named masks; empty: no masks"),
        Setting("overlays", .text, .string(""), "folder of named overlays; empty: no overlays"),
        Setting(
            "auto", .list, .list([.string("jxl"), .string("webp")]),
            "formats negotiated by `auto`, in order of preference: jxl, webp, avif"),
        Setting("recipes.allow", .list, .list([]), "recipes the server renders; empty: any in a signed URL"),
        Setting(
            "log.level", .choice(["trace", "debug", "info", "warning", "error"]), .string("warning"),
            "what serve logs; info logs each request, which is expensive under load"),
        Setting(
            "log.format", .choice(["text", "json"]), .string("text"),
            "format of serve's log: text for people, json for log collectors"),
    ]

    private static let sourcesAndFetching: [Setting] = [
        Setting(
            "sources.allow", .list, .list([]),
            "allowed sources: [SCHEME://]HOST[:PORT][/PATH], HOST also *.NAME or .NAME; empty: all"),
        Setting("sources.deny", .list, .list([]), "denied sources, same syntax; overrides sources.allow"),
        Setting(
            "allowPrivateAddresses", .either([.bool, .list]), .bool(false),
            "true, or a list of address/CIDR[:port]; off, so that no URL can reach the internal network"),
        Setting(
            "acceptedTypes", .list, .list([.string("image/*"), .string("application/octet-stream"), .string("")]),
            "media types accepted from origins, empty text: no Content-Type sent; the format is decided by magic bytes"),
        Setting(
            "forwardFields", .list, .list([]),
            "client request fields sent upstream; none, so that responses can be shared"),
        Setting(
            "forwardMethods", .list, .list([]),
            "methods besides GET and HEAD that /original passes on; unset: all with forwardFields *, else none"),
        Setting(
            "hosts", .map, .map([]),
            "[http://]HOST[:PORT] → headers, basic (USER:PASSWORD), bearer, ca, insecure, trace; set as a whole; "
                + "https unless stated",
            isSecret: true),
        Setting(
            "fetch.slots", .integer(1...4096), .int(16),
            "transfers at once; enough to hide latency, few enough to be polite"),
        Setting("fetch.perHost", .integer(1...4096), .int(6), "transfers at once to one host, as browsers do"),
        Setting("fetch.connectSeconds", seconds, .double(4), "name lookup, connection and TLS"),
        Setting("fetch.headerSeconds", seconds, .double(10), "until the first header field"),
        Setting("fetch.totalSeconds", seconds, .double(15), "one attempt, from start to last byte"),
        Setting("fetch.stallSeconds", seconds, .double(5), "a transfer below 1 kB/s for this long fails"),
        Setting("fetch.redirects", .integer(0...20), .int(3), "redirects followed; each target is checked again"),
        Setting("fetch.rate", .number(0...1e9), .double(0), "requests a second to one host; 0: no limit"),
        Setting("fetch.http2", .bool, .bool(true), "HTTP/2 over TLS; never in clear text"),
        Setting(
            "fetch.breaker", .either([.bool, .map]), .bool(true),
            "stop sending requests to an origin that keeps failing; a map sets failures (20) and seconds (10)"),
        Setting("retries", .integer(0...20), .int(2), "retries after connection failures and 429, 502, 503, 504"),
    ]

    private static let caching: [Setting] = [
        Setting(
            "defaultMaxAge", maximumAge, .double(0), "seconds of freshness if the origin sends none; 0: none is assumed"
        ),
        Setting("errorMaxAge", maximumAge, .double(0), "seconds an origin's failure is cached; 0: not cached"),
        Setting("errorAttempts", .integer(1...1000), .int(1), "failed attempts before errorMaxAge applies"),
        Setting(
            "private", .bool, .bool(false),
            "act as a private cache; off, because the rules for a shared cache are stricter"),
        Setting("honourClientNoCache", .bool, .bool(false), "off, so that clients cannot force requests to the origin"),
        Setting(
            "memory.originals", .size, .string("4%"), "share of memory; with memory.variants a tenth of it",
            departure:
                "8 MB in all commands but serve: one pass requests nothing twice except an original with several recipes"
        ),
        Setting(
            "memory.records", .size, .string("0.4%"),
            "records of originals, in addition to them; a tenth of memory.originals",
            departure: "0.8 MB in all commands but serve"),
        Setting(
            "memory.variants", .size, .string("6%"), "share of memory; variants are small and requested most",
            departure: "2 MB in all commands but serve, for the same reason"),
        Setting("memory.pixels", .size, .int(0), "decoded pixels for programs that display; 0: none"),
        Setting("disk.originals", .size, .string("4GB"), "originals on disk; a share is of the file system"),
        Setting("disk.variants", .size, .string("2GB"), "variants on disk; a share is of the file system"),
        Setting(
            "disk.freeSpace", .size, .string("1GB"),
            "kept free on the file system; unless set, at most a twentieth of it; 0: no minimum"),
        Setting(
            "disk.fsync", .bool, .bool(false),
            "off: a power cut may lose the last 30 s of writes, but never leaves a torn entry"),
    ]

    private static let rendering: [Setting] = [
        Setting(
            "render.workers", .integer(0...1024), .int(0), "concurrent renders; 0: the number of processors",
            departure: "serve: one more, because workers also spend time copying and waiting"),
        Setting(
            "render.isolation", .choice(["workers", "inProcess"]), .string("workers"),
            "workers: a crash or hang costs one request",
            departure: "library: inProcess, which needs no worker executable; for trusted pictures"),
        Setting(
            "render.quality", .choice(["fast", "balanced", "best"]), .string("balanced"),
            "how much of the downscaling is left to decoders, which is cheap but blurs: most with fast, none with best"),
        Setting(
            "decoders", .list, .list(ImageFormat.decodedByDefault.map { .string($0.rawValue) }),
            "formats of originals, masks and overlays that are decoded; jxl only if listed; fewer formats mean less attack surface"
        ),
        Setting(
            "heif.trusted", .bool, .bool(false),
            "suppress the warning about an old libheif, if your distribution has patched it"),
        Setting("limits.pixels", positive, .int(50_000_000), "over all frames the recipe decodes"),
        Setting("limits.bytes", .size, .string("50MB"), "of an original, counted as it streams"),
        Setting("limits.frames", positive, .int(256), "frames of an animation"),
        Setting("limits.scans", positive, .int(64), "scans of a JPEG; encoders write 3 to 12"),
        Setting("limits.outputEdge", .integer(1...8192), .int(8192), "each edge of a variant"),
        Setting("limits.profileBytes", .size, .string("4MiB"), "of a colour profile; device profiles take up to 3 MiB"),
        Setting("limits.seconds", seconds, .double(10), "opening, decoding and the steps of one render, wall time"),
        Setting(
            "limits.encodeSeconds", seconds, .double(10), "encoding, wall time",
            departure: "60 in all commands but serve: no other clients wait for the worker"),
        Setting("limits.workerMemory", .size, .string("1GiB"), "growth of a worker's address space"),
        Setting("limits.steps", .integer(1...32), .int(32), "steps of a recipe"),
    ]

    private static let serving: [Setting] = [
        Setting(
            "listen", .text, .string("127.0.0.1:8080"),
            "address to listen on; loopback only, unless you choose otherwise"),
        Setting("allowUnsigned", .bool, .bool(false), "serve URLs without a signature"),
        Setting("server.connections", .integer(1...1_000_000), .int(1024), "clients at once"),
        Setting("server.headerBytes", .size, .string("16KiB"), "of one request's head"),
        Setting(
            "server.bodyBytes", .size, .string("64KiB"), "of one request's body, which is read even if it is not used"),
        Setting("server.idleSeconds", seconds, .double(60), "before an idle connection is closed"),
    ]

    /// Settings by name.
    static let byKey: [String: Setting] = Dictionary(uniqueKeysWithValues: all.map { ($0.key, $0) })

    /// The setting, or an error that names the nearest one.
    static func setting(_ key: String, _ origin: SettingOrigin) throws(SettingError) -> Setting {
        if let setting = byKey[key] { return setting }
        throw SettingError(.unknownKey, origin, "unknown setting `\(key)`" + NearestName.hint(key, in: all.map(\.key)))
    }
}

extension SettingCatalogue {
    /// The Markdown table of all settings in `docs/settings.md`.
    static var referenceText: String {
        let rows = all.map { setting in
            let cells = [
                "`\(setting.key)`", setting.kind.expectation, "`\(setting.fallback.json)`", setting.reason,
                setting.departure ?? "",
            ]
            return "| " + cells.map { $0.split(separator: "|").joined(separator: "\\|") }.joined(separator: " | ")
                + " |"
        }
        let head = ["| setting | takes | default | what and why | another default |", "|---|---|---|---|---|"]
        return (head + rows).joined(separator: "\n") + "\n"
    }
}
