import HTTPCaching
import ImageServer
import ImageServerNIO
import Pipeline
import Variants

/// All settings. To add a setting, add a line here and use the property that it fills.
enum SettingCatalogue {
    private static let positive = 1...Int.max

    static let all: [Setting] = pipeline + starting + serving

    /// The settings that `serve` reads again on SIGHUP. They decide what the site serves and to whom, and limit
    /// connections. The other settings fill objects that live as long as the process.
    static let reloaded = Set(serving.map(\.key) + ["presets", "policy"])

    /// The settings that every command reads, in this order. A folder precedes sizes that are percentages of its file
    /// system.
    static let pipeline: [Setting] = general + sourcesAndFetching + caching + rendering

    private static let general: [Setting] = [
        Setting(
            "cache", \.pipeline.cacheFolder, .path,
            "cache folder; empty: $XDG_CACHE_HOME/image-pipeline or ~/.cache/image-pipeline"),
        Setting("presets", \.presets, .texts(), "name → recipe, used as @name; none are built in"),
        Setting("masks", \.pipeline.rendering.masks, .path, "folder of named masks; empty: no masks"),
        Setting("overlays", \.pipeline.rendering.overlays, .path, "folder of named overlays; empty: no overlays"),
    ]

    private static let sourcesAndFetching: [Setting] = [
        Setting(
            "sources.allow", \.pipeline.fetch.sources.allow, .list(of: .pattern()),
            "allowed sources: [SCHEME://]HOST[:PORT][/PATH], HOST also *.NAME or .NAME; empty: all"),
        Setting(
            "sources.deny", \.pipeline.fetch.sources.deny, .list(of: .pattern()),
            "denied sources, same syntax; overrides sources.allow"),
        Setting(
            "allowPrivateAddresses", \.pipeline.fetch.allowPrivateAddresses, .addresses(),
            "true, or a list of address/CIDR[:port]; off, so that no URL can reach the internal network"),
        Setting(
            "acceptedTypes", \.pipeline.acceptedTypes, .list,
            "media types accepted from origins, empty text: an empty Content-Type; unless they are set, only `/original` "
                + "looks at them, and for variants the bytes decide"),
        Setting(
            "hosts", \.pipeline.fetch.hosts, .hosts(),
            "[http://]HOST[:PORT] → fields and credentials for it (basic: USER:PASSWORD) and rules for its answers; set as a whole; https "
                + "unless stated",
            isSecret: true),
        Setting(
            "s3", \.pipeline.s3, .s3(),
            "accessKey goes with secretKey or secretKeyFile (and sessionToken), buckets has the same for single ones; set as a "
                + "whole",
            isSecret: true),
        Setting(
            "fetch.slots", \.pipeline.fetch.maxConcurrentTransfers, .integer(1...4096),
            "transfers at once that receive; enough to hide latency, few enough to be polite; 32 times as many with slow "
                + "ones and first ones of origins"),
        Setting(
            "fetch.perHost", \.pipeline.fetch.maxConcurrentTransfersPerHost, .integer(1...4096),
            "transfers at once to one origin, as browsers do"),
        Setting(
            "fetch.connectSeconds", \.pipeline.fetch.connectTimeout, .seconds, "name lookup, connection and TLS"),
        Setting("fetch.headerSeconds", \.pipeline.fetch.headTimeout, .seconds, "until the first header field"),
        Setting(
            "fetch.totalSeconds", \.pipeline.fetch.totalTimeout, .seconds(atLeast: 0),
            "one attempt, from start to last byte; 0: no limit while it moves",
            unlessServing: OtherDefault(.zero, "no client waits, and a slow line is not an error")),
        Setting(
            "fetch.stallSeconds", \.pipeline.fetch.stallTimeout, .seconds,
            "a transfer below 1 kB/s for this long fails"),
        Setting(
            "fetch.redirects", \.pipeline.fetch.maxRedirects, .integer(0...20),
            "redirects followed; each target is checked again"),
        Setting(
            "fetch.rate", \.pipeline.fetch.maxRequestsPerSecond, .number(0...1e9),
            "requests a second to one host; 0: no limit"),
        Setting(
            "fetch.proxy", \.pipeline.fetch.proxy, .orNone(.proxy()),
            "http://[USER:PASSWORD@]HOST[:PORT] of a proxy; it resolves names, so only addresses in URLs are checked; "
                + "empty: none, also if the environment names one",
            isSecret: true),
        Setting("fetch.userAgent", \.pipeline.fetch.userAgent, .fieldValue, "User-Agent of requests to origins"),
        Setting("fetch.http2", \.pipeline.fetch.http2, .bool, "HTTP/2 over TLS; never in clear text"),
        Setting(
            "fetch.breaker", \.pipeline.fetch.breaker, .breaker(),
            "stop sending requests to an origin that keeps failing; true: 20 failures, 10 seconds"),
        Setting(
            "retries", \.pipeline.fetch.maxRetries, .integer(0...20),
            "retries after connection failures and 429, 502, 503, 504"),
    ]

    private static let caching: [Setting] = [
        Setting(
            "policy", \.pipeline.policy, .choice(.protocol, .cacheElseLoad),
            "protocol: HTTP's rules; cacheElseLoad: cached responses are used until they are trimmed or purged"),
        Setting(
            "defaultMaxAge", \.pipeline.caching.defaultMaxAge, .orZero(.age),
            "seconds of freshness if the origin sends none; 0: none is assumed"),
        Setting(
            "errorMaxAge", \.pipeline.caching.errorMaxAge, .unset(as: CachingConfiguration.usualErrorMaxAge, .age),
            "seconds an origin's failure is cached; 0: not; unless set, for variants only: 404, 410, 5xx and a broken picture"
        ),
        Setting(
            "errorAttempts", \.pipeline.caching.errorAttempts, .integer(1...1000),
            "failed attempts before errorMaxAge applies"),
        Setting(
            "private", \.pipeline.caching.isPrivate, .bool,
            "act as a private cache; off, because the rules for a shared cache are stricter"),
        Setting(
            "memory.originals", \.memoryOfOriginals, .memoryShare,
            "share of memory; with memory.variants a tenth of it",
            unlessServing: OtherDefault(
                8_000_000, "one pass requests nothing twice except an original with several recipes")),
        Setting(
            "memory.records", \.pipeline.memory.records, .memoryShare,
            "records of originals, in addition to them; a tenth of memory.originals",
            unlessServing: OtherDefault(800_000, "a tenth of memory.originals there, too")),
        Setting(
            "memory.variants", \.pipeline.memory.variants, .memoryShare,
            "share of memory; variants are small and requested most",
            unlessServing: OtherDefault(2_000_000, "one pass requests nothing twice")),
        Setting(
            "memory.pixels", \.pipeline.memory.pixels, .size(), "decoded pixels for programs that display; 0: none"),
        Setting(
            "disk.originals", \.pipeline.disk.originals, .size(of: .fileSystem),
            "originals on disk; a share is of the file system"),
        Setting(
            "disk.variants", \.pipeline.disk.variants, .size(of: .fileSystem),
            "variants on disk; a share is of the file system"),
        Setting(
            "disk.freeSpace", \.pipeline.disk.freeSpace,
            .unset(as: DiskStoreConfiguration.usualFreeSpace, .size(of: .fileSystem)),
            "kept free on the file system; unless set, at most a twentieth of it; 0: no minimum"),
        Setting(
            "disk.fsync", \.pipeline.disk.fsync, .bool,
            "off: a power cut may lose the last 30 s of writes, but never leaves a torn entry"),
        Setting(
            "remote.s3", \.bucket, .bucket(),
            "bucket behind the folder, which several machines may share; credentials as in `s3`; set as a whole; empty: none",
            isSecret: true),
        Setting(
            "remote.seconds", \.remote.timeout, .seconds,
            "a request waits this long for a look-up in the bucket before it counts as a miss"),
        Setting(
            "remote.queue", \.remote.queueBytes, .size(),
            "bytes that may wait to be stored in the bucket; further entries are dropped"),
        Setting("remote.originals", \.remote.originals, .bool, "keep originals and their records in the bucket"),
        Setting("remote.variants", \.remote.variants, .bool, "keep variants in the bucket"),
        Setting(
            "fleet.redis", \.fleet, .orNone(.fleet()),
            "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// for TLS: where machines with caches of their own "
                + "learn of each other's purges; each fleet needs a separate database; empty: no fleet",
            isSecret: true),
        Setting(
            "fleet.seconds", \.fleetSeconds, .number(0.1...60),
            "time for which a machine relies on the purges it knows; after a longer stop it asks before it answers"
        ),
        Setting(
            "queue", \.queue, .orNone(.redis()),
            "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE] of batch --queue and worker if they name none, and the password if "
                + "they name the same server; empty: fleet.redis",
            isSecret: true),
        Setting(
            "queueKey", \.queueKey, .orNone(.queueKey()),
            "secret of at least 16 characters that batch --queue signs entries with and worker checks them by; empty: none",
            isSecret: true),
    ]

    private static let rendering: [Setting] = [
        Setting(
            "render.workers", \.workers.maxConcurrentRenders, .orZero(.integer(0...1024)),
            "concurrent renders; 0: one more than processors, because workers also spend time copying and waiting",
            unlessServing: OtherDefault(
                RunConfiguration.processors, as: "as many as processors",
                "starting another costs a short run more than it gains")),
        Setting(
            "render.isolation", \.isolation, .choice, "workers: a crash or hang costs one request",
            departure: "library: inProcess, which needs no worker executable; for trusted pictures"),
        Setting(
            "libvips", \.pipeline.rendering.libvips, .path,
            "file of libvips to load, for example of PyPI's pyvips-binary; empty: the system's libvips.so.42"),
        Setting(
            "render.quality", \.pipeline.rendering.quality, .choice,
            "how much of the downscaling decoders do, which is cheap but less exact: most with fast, none with best"),
        Setting(
            "render.light", \.pipeline.rendering.light, .choice,
            "the values that resizing mixes: linear light, the stored values as browsers do, or the better choice for the picture"
        ),
        Setting(
            "render.effort", \.pipeline.rendering.effort, .choice,
            "how hard encoders try to save bytes if a recipe gives no effort=; quick: for waiting requests",
            unlessServing: OtherDefault(.thorough, "no clients wait, and each picture is made once and sent often")),
        Setting(
            "outputs", \.pipeline.rendering.outputs, .outputs(),
            "options of outputs where a recipe gives none, an output for each format: jpeg:80:progressive, avif:50:effort=3, "
                + "webp:keep=copyright"),
        Setting(
            "decoders", \.pipeline.rendering.limits.formats, .formats(among: ImageFormat.decodable),
            "formats of originals, masks and overlays that are decoded; jxl and svg only if listed; fewer formats mean less attack surface"
        ),
        Setting(
            "decode.damaged", \.damaged, .choice,
            "a JPEG or PNG that is cut off is refused, or its readable part is rendered and not stored"),
        Setting(
            "limits.pixels", \.pipeline.rendering.limits.pixels, .integer(positive),
            "over all frames the recipe decodes",
            unlessServing: OtherDefault(500_000_000, "pictures are the user's own, and no other clients wait")),
        Setting(
            "limits.bytes", \.pipeline.rendering.limits.bytes, .size(), "of an original, counted as it streams",
            unlessServing: OtherDefault(1_000_000_000, "pictures are the user's own, and no other clients wait")),
        Setting("limits.frames", \.pipeline.rendering.limits.frames, .integer(positive), "frames of an animation"),
        Setting(
            "limits.scans", \.pipeline.rendering.limits.scans, .integer(positive),
            "scans of a JPEG; encoders write 3 to 12"),
        Setting(
            "limits.outputEdge", \.pipeline.rendering.limits.outputEdge, .integer(1...8192), "each edge of a variant"),
        Setting(
            "limits.profileBytes", \.pipeline.rendering.limits.profileBytes, .size(),
            "of a colour profile; device profiles take up to 3 MiB"),
        Setting(
            "limits.seconds", \.pipeline.rendering.limits.timeout, .seconds,
            "opening, decoding and the steps of one render, wall time; a picture that should take longer, judging by its header, is "
                + "refused",
            unlessServing: OtherDefault(.seconds(60), "no other clients wait for the worker")),
        Setting(
            "limits.encodeSeconds", \.pipeline.rendering.limits.encodeTimeout, .seconds, "encoding, wall time",
            unlessServing: OtherDefault(.seconds(60), "no other clients wait for the worker")),
        Setting(
            "limits.workerMemory", \.workers.memory, .size(),
            "growth of a worker's address space; a picture that would need more, judging by its header, is refused"),
        Setting(
            "server.queue", \.pipeline.maxWaiting, .orZero(.integer(0...1_000_000)),
            "renders in progress and waiting, and as many fetches from each network; beyond it 503 with Retry-After; 0: no bound",
            unlessServing: OtherDefault(nil, as: "0", "a run bounds its own requests; so does the library's caller")),
        Setting("limits.steps", \.stepLimit, .integer(1...32), "steps of a recipe"),
    ]

    /// The settings that only `serve` reads, at startup.
    private static let starting: [Setting] = [
        Setting(
            "listen", \.listener.listen, .listenAddress,
            "HOST:PORT, *:PORT for all addresses, unix:PATH, or fd:NUMBER for a socket that was passed; by default loopback only"
        ),
        Setting("server.connections", \.listener.connections, .integer(1...1_000_000), "clients at once"),
        Setting(
            "server.connectionsPerAddress", \.listener.connectionsPerAddress, .orZero(.integer(0...1_000_000)),
            "requests in progress of one address that is not a trusted proxy's; 0: a quarter of server.connections"),
        Setting(
            "server.drainSeconds", \.drainSeconds, .number(0...3600),
            "between /ready saying 503 and the end of listening, so that load balancers see it"),
        Setting(
            "server.adminListen", \.adminListen, .orNone(.listenAddress),
            "address for operators: every request to it may read /metrics; empty: none"),
        Setting(
            "server.accessLog", \.accessLog, .choice,
            "a line on stdout for each request; off, because it is expensive under load"),
        Setting("server.metrics", \.hasMetrics, .bool, "count and time requests for /metrics"),
        Setting(
            "heif.trusted", \.trustsHEIF, .bool,
            "suppress the warning about an old libheif, if your distribution has patched it"),
        Setting(
            "log.level", \.logLevel, .choice,
            "the messages that serve logs; info logs each request, which is expensive under load"),
        Setting(
            "log.format", \.logFormat, .choice,
            "format of serve's log: text for people, json for log collectors"),
    ]

    /// The settings that only `serve` reads, at startup and on each reload.
    private static let serving: [Setting] = [
        Setting(
            "allowUnsigned", \.site.signature.allowUnsigned, .bool,
            "serve URLs without a signature; unset and without keys: to clients on this machine alone"),
        Setting(
            "keys", \.site.signature.keys, .signingKeys(),
            "name → key that signs URLs, at least 16 bytes in hexadecimal digits; several, so that keys can be replaced",
            isSecret: true),
        Setting(
            "keysFile", \.keysFile, .path,
            "file of further keys, a line `NAME: KEY` each; keeps secrets out of settings and environment"),
        Setting(
            "baseURLs", \.site.baseURLs, .texts(),
            "name → URL of a folder, so that a source may be NAME:PATH; file:///PATH serves the files below it"),
        Setting(
            "defaultBase", \.site.defaultBase, .orNone(.text),
            "the name among baseURLs that sources without one have: a/b.jpg; empty: they are refused"),
        Setting(
            "adminToken", \.site.adminToken, .orNone(.adminToken()),
            "secret of at least 16 characters that purges carry; empty: purges are refused", isSecret: true),
        Setting(
            "tags", \.site.tags, .choice, "fields with tags on variants, by which caches in front purge them"),
        Setting(
            "auto", \.formats, .unset(as: Negotiation.preferred(.quick), .formats(among: Negotiation.offered)),
            "formats negotiated by `auto`, in order of preference; unset with render.effort thorough: jxl, avif, webp"),
        Setting(
            "recipes.allow", \.allowedRecipes, .list, "recipes the server renders; empty: any in a signed URL"),
        Setting(
            "recipes.presetsOnly", \.site.recipes.presetsOnly, .bool,
            "render presets alone (`@name`), nothing that clients write themselves"),
        Setting(
            "recipes.suffixes", \.site.recipes.suffixes, .suffixes(),
            "steps that may follow the preset with recipes.presetsOnly, as clients write them: @card,dpr:2,webp"),
        Setting(
            "recipes.steps", \.site.recipes.steps, .steps(),
            "steps, load options and outputs that clients may write; empty: all; presets may use any"),
        Setting(
            "recipes.watermark", \.watermark, .text,
            "steps that end every recipe, presets too, such as overlay:logo:gravity=south-east:scale=20%:offset=3%; empty: "
                + "none"),
        Setting(
            "server.routes", \.site.routes, .routes(),
            "paths that are open: variant, original, info; unset: all, but variant alone with recipes.allow, recipes.presetsOnly, "
                + "recipes.steps or recipes.watermark"),
        Setting(
            "sizes.steps", \.site.recipes.sizes, .sizeSteps(),
            "the larger edge of thumbnail goes up to the next of these, and two edges go to a usual ratio; off, so that sizes "
                + "are exact; true: 20, 40, 60, 120, 250, 330, 500, 960, 1280, 1920, 3840"),
        Setting(
            "sizes.strict", \.site.recipes.refusesOtherSizes, .bool,
            "refuse other sizes than sizes.steps instead of rounding up"),
        Setting(
            "forwardFields", \.site.forwardedFields, .list,
            "client request fields sent upstream; none, so that responses can be shared"),
        Setting(
            "forwardMethods", \.site.forwardedMethods, .unset(as: [], .methods()),
            "methods besides GET and HEAD that /original passes on; unset: all with forwardFields *, else none"),
        Setting(
            "honourClientNoCache", \.site.honorsClientNoCache, .bool,
            "off, so that clients cannot force requests to the origin"),
        Setting(
            "server.folderLinks", \.site.followsFolderLinks, .bool,
            "follow symbolic links in folders of baseURLs if they stay below the same folder"),
        Setting("server.headerBytes", \.listener.headerBytes, .size(atLeast: 1024), "of one request's head"),
        Setting(
            "server.bodyBytes", \.listener.bodyBytes, .size(),
            "of one request's body, which is read even if it is not used"),
        Setting(
            "server.rate", \.site.rate, .rate(),
            "requests a second of one client that the caches cannot answer, ten seconds' worth at once; 0: no limit"),
        Setting(
            "server.fallback", \.fallback, .path,
            "picture sent with a 404 or 422 of a variant, rendered by its recipe, never cached; empty: the problem as JSON"
        ),
        Setting(
            "server.fallbackStatus", \.site.fallbackStatus, .orZero(.fallbackStatus()),
            "status of answers with server.fallback; 0: the problem's, so that no client takes it for the picture"),
        Setting(
            "server.fields", \.site.fields, .addedFields(),
            "fields of pictures, originals and descriptions besides the server's own: name → value"),
        Setting(
            "server.referrers", \.site.referrers, .referrers(),
            "pages that may show pictures, like sources.allow without paths; requests without Referer may; empty: all pages"
        ),
        Setting(
            "server.mountPoint", \.site.mountPoint, .mountPoint(),
            "path before all others, as a proxy passes it on: /images; /health, /ready and /metrics also work without"),
        Setting(
            "server.cacheControl", \.freshness, .clientFreshness(),
            "Cache-Control of variants, in seconds; presets has the same for single ones; empty: what follows from the "
                + "origin's"),
        Setting("server.idleSeconds", \.listener.idleSeconds, .seconds, "before an idle connection is closed"),
        Setting(
            "server.cors", \.site.crossOrigin, .origins(),
            "origins with pages that may read answers with scripts, such as https://example.org, or *; not needed to show pictures"
        ),
        Setting(
            "server.trustedProxies", \.listener.proxies, .proxies(),
            "addresses, CIDR blocks and `unix` of proxies with a trusted Forwarded or X-Forwarded-For; empty by default, since clients can write these fields"
        ),
        Setting(
            "server.playground", \.playground, .unset(as: false, .bool),
            "the page at /; unset: on if unsigned URLs are served and only this machine can connect"),
    ]

    /// Settings that have been removed, and what to use instead.
    static let removed = Dictionary(
        uniqueKeysWithValues: ["server.tls", "server.http2"].map {
            ($0, "`\($0)` has been removed: have nginx, Caddy or HAProxy speak TLS and HTTP/2 (docs/server.md, `TLS`)")
        })

    static let byKey: [String: Setting] = Dictionary(uniqueKeysWithValues: all.map { ($0.key, $0) })

    /// Returns a setting. If the name is unknown, throws an error that suggests the most similar name.
    static func setting(_ key: String, _ origin: SettingOrigin) throws(SettingErrors) -> Setting {
        if let setting = byKey[key] { return setting }
        if let advice = removed[key] { throw SettingErrors(SettingError(.unknownKey, origin, advice)) }
        throw SettingErrors(
            SettingError(
                .unknownKey, origin, "unknown setting `\(key)`" + NearestName.hint(key, in: all.map(\.key))))
    }
}
