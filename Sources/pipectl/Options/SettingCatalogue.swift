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
        Setting("recipes.allow", .list, .list([]), "recipes the server makes; empty: all that are signed"),
        Setting(
            "log.level", .choice(["trace", "debug", "info", "warning", "error"]), .string("warning"),
            "what serve logs; info logs each request, which costs a busy server much"),
        Setting(
            "log.format", .choice(["text", "json"]), .string("text"),
            "of serve's log: text for people, json for collectors"),
    ]

    private static let sourcesAndFetching: [Setting] = [
        Setting(
            "sources.allow", .list, .list([]),
            "[SCHEME://]HOST[:PORT][/PATH] admitted, HOST also *.NAME or .NAME; empty: all"),
        Setting("sources.deny", .list, .list([]), "the same, refused; wins over sources.allow"),
        Setting(
            "allowPrivateAddresses", .either([.bool, .list]), .bool(false),
            "true, or a list of address/CIDR[:port]; off, so that no URL reaches inside the network"),
        Setting(
            "acceptedTypes", .list, .list([.string("image/*"), .string("application/octet-stream"), .string("")]),
            "media types taken from origins, empty text: none sent; magic bytes decide in the end"),
        Setting(
            "forwardFields", .list, .list([]), "client request fields sent upstream; none, so that answers are shared"),
        Setting(
            "forwardMethods", .list, .list([]),
            "methods besides GET and HEAD that /original passes on; unset: all with forwardFields *, else none"),
        Setting(
            "hosts", .map, .map([]),
            "[http://]HOST[:PORT] → headers, basic (USER:PASSWORD), bearer, ca, insecure; set whole; https unless said",
            isSecret: true),
        Setting(
            "fetch.slots", .integer(1...4096), .int(16),
            "transfers at once; enough to hide latency, few enough to be polite"),
        Setting("fetch.perHost", .integer(1...4096), .int(6), "transfers at once to one host, as browsers do"),
        Setting("fetch.connectSeconds", seconds, .double(4), "name lookup, connection and TLS"),
        Setting("fetch.headerSeconds", seconds, .double(10), "until the first header field"),
        Setting("fetch.totalSeconds", seconds, .double(15), "one try from start to last byte"),
        Setting("fetch.stallSeconds", seconds, .double(5), "below 1 kB/s for this long is a failure"),
        Setting("fetch.redirects", .integer(0...20), .int(3), "redirects followed, each admitted anew"),
        Setting("fetch.rate", .number(0...1e9), .double(0), "requests a second to one host; 0: no limit"),
        Setting("fetch.http2", .bool, .bool(true), "HTTP/2 over TLS; never in clear text"),
        Setting(
            "fetch.breaker", .either([.bool, .map]), .bool(true),
            "stop asking an origin that keeps failing; a map sets failures (20) and seconds (10)"),
        Setting("retries", .integer(0...20), .int(2), "further tries on connection failures and 429, 502, 503, 504"),
    ]

    private static let caching: [Setting] = [
        Setting(
            "defaultMaxAge", maximumAge, .double(0), "seconds, for origins that send nothing; 0: nothing is assumed"),
        Setting("errorMaxAge", maximumAge, .double(0), "seconds an origin's failure is remembered; 0: not at all"),
        Setting("errorAttempts", .integer(1...1000), .int(1), "failed tries before errorMaxAge applies"),
        Setting("private", .bool, .bool(false), "act as a private cache; shared is the stricter rule"),
        Setting("honourClientNoCache", .bool, .bool(false), "off, so that clients cannot force work"),
        Setting(
            "memory.originals", .size, .string("4%"), "of memory; together a tenth of what there is",
            departure:
                "8 MB in all commands but serve: one pass asks for nothing twice but an original with several recipes"),
        Setting(
            "memory.records", .size, .string("0.4%"), "records of originals, beside them; a tenth of memory.originals",
            departure: "0.8 MB in all commands but serve"),
        Setting(
            "memory.variants", .size, .string("6%"), "of memory; variants are small and asked for most",
            departure: "2 MB in all commands but serve, for the same reason"),
        Setting("memory.pixels", .size, .int(0), "decoded pixels for programs that display; 0: none"),
        Setting("disk.originals", .size, .string("4GB"), "originals on disk; a share is of the file system"),
        Setting("disk.variants", .size, .string("2GB"), "variants on disk; a share is of the file system"),
        Setting(
            "disk.freeSpace", .size, .string("1GB"),
            "left free on the file system, a twentieth of it unless set where that is less; 0: no floor"),
        Setting("disk.fsync", .bool, .bool(false), "a cache may lose its last second, never serve a torn entry"),
    ]

    private static let rendering: [Setting] = [
        Setting(
            "render.workers", .integer(0...1024), .int(0), "renders at once; 0: as many as processors",
            departure: "serve: one more, as copying and waiting take turns with computing"),
        Setting(
            "render.isolation", .choice(["workers", "inProcess"]), .string("workers"),
            "workers: a crash or hang costs one request",
            departure: "library: inProcess, which needs no program beside it; for trusted pictures"),
        Setting(
            "render.quality", .choice(["fast", "balanced", "best"]), .string("balanced"),
            "how much of shrinking decoders do, which is cheap but blurs: fast most, best nothing"),
        Setting(
            "decoders", .list, .list(ImageFormat.decodedByDefault.map { .string($0.rawValue) }),
            "formats of originals, masks and overlays that are decoded, jxl if named; the fewer, the less there is to attack"
        ),
        Setting("heif.trusted", .bool, .bool(false), "no warning of an old libheif: your distribution has patched it"),
        Setting("limits.pixels", positive, .int(50_000_000), "over all frames the recipe decodes"),
        Setting("limits.bytes", .size, .string("50MB"), "of an original, counted as it streams"),
        Setting("limits.frames", positive, .int(256), "frames of an animation"),
        Setting("limits.scans", positive, .int(64), "scans of a JPEG; encoders write 3 to 12"),
        Setting("limits.outputEdge", .integer(1...8192), .int(8192), "each edge of a variant"),
        Setting("limits.profileBytes", .size, .string("4MiB"), "of a colour profile; those of devices have up to 3"),
        Setting("limits.seconds", seconds, .double(10), "opening, decoding and the steps of one render, wall time"),
        Setting(
            "limits.encodeSeconds", seconds, .double(10), "encoding, wall time",
            departure: "60 in all commands but serve: a slow encoder takes a worker from nobody else"),
        Setting("limits.workerMemory", .size, .string("1GiB"), "growth of a worker's address space"),
        Setting("limits.steps", .integer(1...32), .int(32), "steps of a recipe"),
    ]

    private static let serving: [Setting] = [
        Setting("listen", .text, .string("127.0.0.1:8080"), "loopback, until somebody decides otherwise"),
        Setting("allowUnsigned", .bool, .bool(false), "serve URLs without a signature"),
        Setting("server.connections", .integer(1...1_000_000), .int(1024), "clients at once"),
        Setting("server.headerBytes", .size, .string("16KiB"), "of one request's head"),
        Setting("server.bodyBytes", .size, .string("64KiB"), "of one request's body; read where nobody wants it too"),
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
