import HTTPCaching
import ImageServer
import ImageServerNIO
import Pipeline
import Variants

/// All settings. To add a setting, add a line here and use the property that it fills.
enum SettingCatalog {
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
            "cache folder; if empty, $XDG_CACHE_HOME/image-pipeline or ~/.cache/image-pipeline"),
        Setting(
            "presets", \.presets, .texts(), "recipes by name, used in recipes as @name; there are no built-in presets"),
        Setting(
            "masks", \.pipeline.rendering.masks, .path,
            "folder with the pictures for `mask:NAME`; if empty, there are no masks"),
        Setting(
            "overlays", \.pipeline.rendering.overlays, .path,
            "folder with the pictures for `overlay:NAME`; if empty, there are no overlays"),
    ]

    private static let sourcesAndFetching: [Setting] = [
        Setting(
            "sources.allow", \.pipeline.fetch.sources.allow, .list(of: .pattern()),
            "allowed sources, as [SCHEME://]HOST[:PORT][/PATH], where HOST can be *.NAME or .NAME; if empty, all sources are allowed"
        ),
        Setting(
            "sources.deny", \.pipeline.fetch.sources.deny, .list(of: .pattern()),
            "denied sources, in the same syntax; takes precedence over sources.allow"),
        Setting(
            "allowPrivateAddresses", \.pipeline.fetch.allowPrivateAddresses, .addresses(),
            "true, or a list of addresses or CIDR blocks, each with an optional :PORT; off by default, so that URLs cannot reach the internal network"
        ),
        Setting(
            "acceptedTypes", \.pipeline.acceptedTypes, .list,
            "media types accepted from origins; \"\" accepts an empty Content-Type; by default, only `/original` "
                + "checks them, and the bytes decide whether a variant can be rendered"),
        Setting(
            "hosts", \.pipeline.fetch.hosts, .hosts(),
            "request headers, credentials (basic: USER:PASSWORD) and response rules by origin; an origin is "
                + "[http://]HOST[:PORT], with https as the default; the value replaces the complete map",
            isSecret: true),
        Setting(
            "s3", \.pipeline.s3, .s3(),
            "S3 endpoint and credentials: accessKey with secretKey or secretKeyFile (and optionally sessionToken), or "
                + "profile; buckets overrides them for individual buckets; the value replaces the complete map",
            isSecret: true),
        Setting(
            "fetch.slots", \.pipeline.fetch.maxConcurrentTransfers, .integer(1...4096),
            "maximum number of transfers that receive data at the same time, which hides latency without overloading "
                + "origins; including slow transfers and the first transfer from each origin, the maximum is 32 times "
                + "as high"),
        Setting(
            "fetch.perHost", \.pipeline.fetch.maxConcurrentTransfersPerHost, .integer(1...4096),
            "maximum number of concurrent transfers per origin; the default is that of browsers"),
        Setting(
            "fetch.connectSeconds", \.pipeline.fetch.connectTimeout, .seconds,
            "time limit in seconds for name look-up, connection and TLS handshake"),
        Setting(
            "fetch.headerSeconds", \.pipeline.fetch.headTimeout, .seconds,
            "time limit in seconds from the request to the end of the response header"),
        Setting(
            "fetch.totalSeconds", \.pipeline.fetch.totalTimeout, .seconds(atLeast: 0),
            "time limit in seconds for one attempt, from the start to the last byte; 0 means no limit while data arrives",
            unlessServing: OtherDefault(.zero, "no client is waiting, and a slow connection is not an error")),
        Setting(
            "fetch.stallSeconds", \.pipeline.fetch.stallTimeout, .seconds,
            "time in seconds after which a transfer fails if it stays below 1 kB/s"),
        Setting(
            "fetch.redirects", \.pipeline.fetch.maxRedirects, .integer(0...20),
            "maximum number of redirects; each target is checked like a source"),
        Setting(
            "fetch.rate", \.pipeline.fetch.maxRequestsPerSecond, .number(0...1e9),
            "maximum number of requests per second to each origin; 0 means no limit"),
        Setting(
            "fetch.proxy", \.pipeline.fetch.proxy, .orNone(.proxy()),
            "proxy, as http://[USER:PASSWORD@]HOST[:PORT]; the proxy resolves host names, so allowPrivateAddresses "
                + "applies only to addresses in URLs; if empty, no proxy is used, even if environment variables name "
                + "one",
            isSecret: true),
        Setting(
            "fetch.userAgent", \.pipeline.fetch.userAgent, .fieldValue, "value of User-Agent in requests to origins"),
        Setting("fetch.http2", \.pipeline.fetch.http2, .bool, "use HTTP/2 over TLS; never used without TLS"),
        Setting(
            "fetch.breaker", \.pipeline.fetch.breaker, .breaker(),
            "reject requests to an origin after repeated failures; true means after 20 failures, for 10 seconds"),
        Setting(
            "retries", \.pipeline.fetch.maxRetries, .integer(0...20),
            "maximum number of retries after a connection failure, 429, 502, 503 or 504"),
    ]

    private static let caching: [Setting] = [
        Setting(
            "policy", \.pipeline.policy, .choice(.protocol, .cacheElseLoad),
            "protocol means that the caching rules of HTTP are followed, cacheElseLoad that cached responses are used until they are trimmed or purged"
        ),
        Setting(
            "defaultMaxAge", \.pipeline.caching.defaultMaxAge, .orZero(.age),
            "freshness lifetime in seconds of a response that does not specify one; 0 means that such a response has no lifetime"
        ),
        Setting(
            "errorMaxAge", \.pipeline.caching.errorMaxAge, .unset(as: CachingConfiguration.usualErrorMaxAge, .age),
            "time in seconds for which failures of an origin are cached; 0 means that they are not cached; if not set, the default applies only to variants, after 404, 410, 5xx or a broken picture"
        ),
        Setting(
            "errorAttempts", \.pipeline.caching.errorAttempts, .integer(1...1000),
            "number of failed attempts before errorMaxAge applies"),
        Setting(
            "private", \.pipeline.caching.isPrivate, .bool,
            "act as a private cache; off by default, because the rules for shared caches are stricter"),
        Setting(
            "memory.originals", \.memoryOfOriginals, .memoryShare,
            "memory cache for originals; by default, this and memory.variants together use a tenth of the memory",
            unlessServing: OtherDefault(
                8_000_000, "a single run reads an original twice only if it has several recipes")),
        Setting(
            "memory.records", \.pipeline.memory.records, .memoryShare,
            "memory cache for the records of originals, in addition to memory.originals; by default, a tenth of memory.originals",
            unlessServing: OtherDefault(800_000, "a tenth of memory.originals")),
        Setting(
            "memory.variants", \.pipeline.memory.variants, .memoryShare,
            "memory cache for variants, which are small and requested most often",
            unlessServing: OtherDefault(2_000_000, "a single run requests each variant only once")),
        Setting(
            "memory.pixels", \.pipeline.memory.pixels, .size(),
            "memory cache for decoded pixels, for programs that display pictures; 0 means no cache"),
        Setting(
            "disk.originals", \.pipeline.disk.originals, .size(of: .fileSystem),
            "disk cache for originals; a percentage refers to the size of the file system"),
        Setting(
            "disk.variants", \.pipeline.disk.variants, .size(of: .fileSystem),
            "disk cache for variants; a percentage refers to the size of the file system"),
        Setting(
            "disk.freeSpace", \.pipeline.disk.freeSpace,
            .unset(as: DiskStoreConfiguration.usualFreeSpace, .size(of: .fileSystem)),
            "space that the cache leaves free on the file system; if not set, at most a twentieth of the file system; 0 means no minimum"
        ),
        Setting(
            "disk.fsync", \.pipeline.disk.fsync, .bool,
            "flush each write to the disk; if off, a power failure can lose the last 30 s of writes, but never leaves an incomplete entry"
        ),
        Setting(
            "remote.s3", \.bucket, .bucket(),
            "bucket that stores entries in addition to the cache folder and can be shared by several machines; credentials are given as in `s3`; the value replaces the complete map; if empty, no bucket is used",
            isSecret: true),
        Setting(
            "remote.seconds", \.remote.timeout, .seconds,
            "time limit in seconds for a look-up in the bucket; after that, the look-up is treated as a miss"),
        Setting(
            "remote.queue", \.remote.queueBytes, .size(),
            "maximum number of bytes waiting to be stored in the bucket; further entries are not stored there"),
        Setting("remote.originals", \.remote.originals, .bool, "store originals and their records in the bucket"),
        Setting("remote.variants", \.remote.variants, .bool, "store variants in the bucket"),
        Setting(
            "fleet.redis", \.fleet, .orNone(.fleet()),
            "Redis server through which machines with separate caches receive each other's purges, as "
                + "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// for TLS; each fleet needs a separate "
                + "database; if empty, there is no fleet",
            isSecret: true),
        Setting(
            "fleet.seconds", \.fleetSeconds, .number(0.1...60),
            "time in seconds for which stored entries are served after the last contact with fleet.redis; after that, purges are read first"
        ),
        Setting(
            "queue", \.queue, .orNone(.redis()),
            "Redis server that `batch --queue` and `worker` use if no URL is given on the command line, as "
                + "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]; if the URL names the same server without a "
                + "password, the password in this setting is used; if empty, fleet.redis is used",
            isSecret: true),
        Setting(
            "queueKey", \.queueKey, .orNone(.queueKey()),
            "secret of at least 16 characters with which `batch --queue` signs entries and `worker` verifies them; if empty, entries are not signed",
            isSecret: true),
    ]

    private static let rendering: [Setting] = [
        Setting(
            "render.workers", \.workers.maxConcurrentRenders, .orZero(.integer(0...1024)),
            "maximum number of concurrent renders; 0 means one more than the number of processors, because workers spend part of the time copying and waiting",
            unlessServing: OtherDefault(
                RunConfiguration.processors, as: "the number of processors",
                "in a short run, starting another worker takes more time than it saves")),
        Setting(
            "render.isolation", \.isolation, .choice,
            "workers: pictures are rendered in separate processes, so that a crash affects only one request",
            differingDefault:
                "inProcess in the library, because it needs no worker executable; only for trusted pictures"),
        Setting(
            "libvips", \.pipeline.rendering.libvips, .path,
            "path of the libvips library to load, for example from pyvips-binary on PyPI; if empty, the system's libvips.so.42 is loaded"
        ),
        Setting(
            "render.quality", \.pipeline.rendering.quality, .choice,
            "how much downscaling is left to the decoders, which is faster but less exact; fast leaves most of it to them, best none"
        ),
        Setting(
            "render.light", \.pipeline.rendering.light, .choice,
            "color values used in resizing; linear means linear light, gamma the stored values, as in browsers, and auto whichever suits the picture"
        ),
        Setting(
            "render.effort", \.pipeline.rendering.effort, .choice,
            "how hard encoders try to save bytes if the recipe has no effort=; quick by default, because clients are waiting",
            unlessServing: OtherDefault(
                .thorough, "no clients are waiting, and a picture that is rendered once is sent many times")),
        Setting(
            "secondPass.cpu", \.pipeline.rendering.secondPass.cpuShare, .number(0...64),
            "share of one processor for encoding frequently requested variants of auto again, with more effort and at the same score; measured over a minute; 0 turns the second pass off; requires render workers"
        ),
        Setting(
            "secondPass.after", \.pipeline.rendering.secondPass.requests, .orZero(.integer(0...255)),
            "number of requests before a variant is encoded again; 0 means that it must be expected to save 100 kB for each second of CPU time"
        ),
        Setting(
            "secondPass.maxAge", \.pipeline.rendering.secondPass.maxAge, .age,
            "maximum max-age in seconds of answers that a second pass may replace"),
        Setting(
            "outputs", \.pipeline.rendering.outputs, .outputs(),
            "default options of outputs, with at most one output per format, such as jpeg:80:progressive, "
                + "avif:50:effort=3, webp:keep=none"),
        Setting(
            "decoders", \.pipeline.rendering.limits.formats, .formats(among: ImageFormat.decodable),
            "formats of originals, masks and overlays that are decoded; jxl, svg and jp2 must be added explicitly; fewer formats reduce the attack surface"
        ),
        Setting(
            "svg", \.pipeline.rendering.limits.svg, .choice,
            "how SVG originals are handled; pass means that they are sanitized and stay SVG unless the recipe names an output, "
                + "raster that they are always drawn as pixels, which requires svg in decoders, and refuse that they are refused"
        ),
        Setting(
            "decode.damaged", \.damaged, .choice,
            "how truncated JPEG and PNG files are handled; refuse means that the render fails, accept that the readable part is rendered, but the variant is not stored"
        ),
        Setting(
            "limits.pixels", \.pipeline.rendering.limits.pixels, .integer(positive),
            "maximum number of pixels of an original, summed over all frames that the recipe decodes; for tiles and pyramids (TIFF, JPEG 2000), only the part that is decoded counts",
            unlessServing: OtherDefault(
                500_000_000, "the pictures are the user's own, and no other clients are waiting")),
        Setting(
            "limits.bytes", \.pipeline.rendering.limits.bytes, .size(),
            "maximum size of an original, checked while it arrives",
            unlessServing: OtherDefault(
                1_000_000_000, "the pictures are the user's own, and no other clients are waiting")),
        Setting(
            "limits.frames", \.pipeline.rendering.limits.frames, .integer(positive),
            "maximum number of frames of an animation"),
        Setting(
            "limits.scans", \.pipeline.rendering.limits.scans, .integer(positive),
            "maximum number of scans of a JPEG; encoders usually write 3 to 12"),
        Setting(
            "limits.outputEdge", \.pipeline.rendering.limits.outputEdge, .integer(1...8192),
            "maximum width and maximum height of a variant, in pixels"),
        Setting(
            "limits.profileBytes", \.pipeline.rendering.limits.profileBytes, .size(),
            "maximum size of a color profile; profiles of devices have up to 3 MiB"),
        Setting(
            "limits.seconds", \.pipeline.rendering.limits.timeout, .seconds,
            "time limit in seconds for opening and decoding a picture and applying the steps together; a picture that "
                + "is expected to take longer, judging by its header, is refused",
            unlessServing: OtherDefault(.seconds(60), "no other clients are waiting for the worker")),
        Setting(
            "limits.encodeSeconds", \.pipeline.rendering.limits.encodeTimeout, .seconds,
            "time limit in seconds for encoding a picture, separate from limits.seconds",
            unlessServing: OtherDefault(.seconds(60), "no other clients are waiting for the worker")),
        Setting(
            "limits.workerMemory", \.workers.memory, .size(),
            "maximum growth of a worker's address space; a picture that is expected to need more, judging by its header, is refused"
        ),
        Setting(
            "server.queue", \.pipeline.maxWaiting, .orZero(.integer(0...1_000_000)),
            "maximum number of renders in progress or waiting and, separately, of fetches per network; the server answers further requests with 503 and Retry-After; 0 means no limit",
            unlessServing: OtherDefault(
                nil, as: "0", "a run limits its own requests, and so does a program that uses the library")),
        Setting("limits.steps", \.stepLimit, .integer(1...32), "maximum number of steps in a recipe"),
    ]

    /// The settings that only `serve` reads, at startup.
    private static let starting: [Setting] = [
        Setting(
            "listen", \.listener.listen, .listenAddress,
            "address to listen on: HOST:PORT, *:PORT for all addresses, unix:PATH, or fd:NUMBER for an inherited socket; only loopback by default"
        ),
        Setting(
            "server.connections", \.listener.connections, .integer(1...1_000_000), "maximum number of connected clients"
        ),
        Setting(
            "server.connectionsPerAddress", \.listener.connectionsPerAddress, .orZero(.integer(0...1_000_000)),
            "maximum number of requests in progress per client address, except for trusted proxies; 0 means a quarter of server.connections"
        ),
        Setting(
            "server.drainSeconds", \.drainSeconds, .number(0...3600),
            "time in seconds at shutdown during which /ready answers 503 while requests are still accepted, so that load balancers notice it"
        ),
        Setting(
            "server.adminListen", \.adminListen, .orNone(.listenAddress),
            "separate address for operators, where /metrics needs no authorization; if empty, there is no such address"),
        Setting(
            "server.accessLog", \.accessLog, .choice,
            "format of the access log on standard output; off by default, because it is expensive under load"),
        Setting("server.metrics", \.hasMetrics, .bool, "collect metrics and serve them at /metrics"),
        Setting(
            "heif.trusted", \.trustsHEIF, .bool,
            "suppress the warning about an old libheif; for distributions that have patched it"),
        Setting(
            "log.level", \.logLevel, .choice,
            "minimum level of messages in the log of `serve`; info includes each request, which is expensive under load"
        ),
        Setting(
            "log.format", \.logFormat, .choice,
            "format of the log of `serve`; text is for people, json for log collectors"),
    ]

    /// The settings that only `serve` reads, at startup and on each reload.
    private static let serving: [Setting] = [
        Setting(
            "allowUnsigned", \.site.signature.allowUnsigned, .bool,
            "serve unsigned URLs; if not set and there are no keys, they are served only to clients on this machine"),
        Setting(
            "keys", \.site.signature.keys, .signingKeys(),
            "keys that sign URLs, by name; each has at least 16 bytes, in hexadecimal digits; use several to replace a key without downtime",
            isSecret: true),
        Setting(
            "keysFile", \.keysFile, .path,
            "file with additional keys, one `NAME: KEY` per line; keeps secrets out of the settings and the environment"
        ),
        Setting(
            "baseURLs", \.site.baseURLs, .texts(),
            "base URLs by name, so that sources can be written as NAME:PATH; file:///PATH serves the files in a folder"),
        Setting(
            "defaultBase", \.site.defaultBase, .orNone(.text),
            "name in baseURLs for sources without a name, such as a/b.jpg; if empty, such sources are refused"),
        Setting(
            "grammars", \.site.grammars, .grammars(),
            "URLs of other systems that the server understands, by name: next, vercel, netlify, astro, ipx, imgproxy, iiif, imaginary; each has path and the members in grammars.md",
            isSecret: true),
        Setting(
            "adminToken", \.site.adminToken, .orNone(.adminToken()),
            "secret of at least 16 characters that authorizes purges; if empty, purges are refused", isSecret: true),
        Setting(
            "tags", \.site.tags, .choice, "header fields with tags in responses, by which CDNs can purge variants"),
        Setting(
            "auto", \.formats, .unset(as: Negotiation.preferred(.quick), .formats(among: Negotiation.offered)),
            "formats that `auto` offers to clients, in order of preference; if not set and render.effort is thorough, these are jxl, avif, webp"
        ),
        Setting(
            "recipes.allow", \.allowedRecipes, .list,
            "recipes that the server renders; if empty, it renders all recipes"),
        Setting(
            "recipes.presetsOnly", \.site.recipes.presetsOnly, .bool,
            "render only presets (`@name`), and no recipes that clients write themselves"),
        Setting(
            "recipes.suffixes", \.site.recipes.suffixes, .suffixes(),
            "with recipes.presetsOnly, steps that can follow the preset, as in @card,dpr:2,webp"),
        Setting(
            "recipes.steps", \.site.recipes.steps, .steps(),
            "steps, load options and outputs that clients may use; if empty, they may use all; does not apply to presets"
        ),
        Setting(
            "recipes.watermark", \.watermark, .text,
            "steps appended to every recipe, including presets, such as "
                + "overlay:logo:gravity=south-east:scale=20%:offset=3%; if empty, none are appended"),
        Setting(
            "server.routes", \.site.routes, .routes(),
            "enabled routes: variant, original, info; if not set, all routes are enabled, but only variant with "
                + "recipes.allow, recipes.presetsOnly, recipes.steps or recipes.watermark"),
        Setting(
            "sizes.steps", \.site.recipes.sizes, .sizeSteps(),
            "round the larger edge of `thumbnail` up to the next of these values, and two edges to a common ratio; off "
                + "by default, so that sizes are exact; true means 20, 40, 60, 120, 250, 330, 500, 960, 1280, 1920, "
                + "3840"),
        Setting(
            "sizes.strict", \.site.recipes.refusesOtherSizes, .bool,
            "refuse sizes that are not in sizes.steps instead of rounding them up"),
        Setting(
            "forwardFields", \.site.forwardedFields, .list,
            "names of request header fields that are forwarded to origins; none by default, so that cached responses can be shared"
        ),
        Setting(
            "forwardMethods", \.site.forwardedMethods, .unset(as: [], .methods()),
            "methods that /original forwards in addition to GET and HEAD; if not set, all methods are forwarded if forwardFields is *, and otherwise no further methods"
        ),
        Setting(
            "honourClientNoCache", \.site.honorsClientNoCache, .bool,
            "let a client's no-cache force a request to the origin; off by default, to protect origins"),
        Setting(
            "server.folderLinks", \.site.followsFolderLinks, .bool,
            "follow symbolic links in folders of baseURLs if the target is in the same folder"),
        Setting(
            "server.headerBytes", \.listener.headerBytes, .size(atLeast: 1024), "maximum size of a request's header"),
        Setting(
            "server.bodyBytes", \.listener.bodyBytes, .size(),
            "maximum size of a request's body except for uploads, which is read even if it is not needed"),
        Setting(
            "server.uploads", \.site.uploads, .bool,
            "let clients send a picture as the body of POST /variant, or of a grammar such as imaginary, up to limits.bytes"
        ),
        Setting(
            "server.rate", \.site.rate, .rate(),
            "maximum number of requests per second and client that miss the caches, with bursts of up to ten seconds' worth; 0 means no limit"
        ),
        Setting(
            "server.fallback", \.fallback, .path,
            "picture sent instead of a variant that fails with 404 or 422, rendered with the same recipe and never cached; if empty, the error is sent as JSON"
        ),
        Setting(
            "server.fallbackStatus", \.site.fallbackStatus, .orZero(.fallbackStatus()),
            "status of responses with server.fallback; 0 means the status of the error, so that clients can tell it from the picture"
        ),
        Setting(
            "server.fields", \.site.fields, .addedFields(),
            "values by name of header fields that are added to pictures, originals and /info"),
        Setting(
            "server.referrers", \.site.referrers, .referrers(),
            "sites whose pages may show pictures, in the syntax of sources.allow without paths; requests without Referer are always allowed; if empty, all sites may show them"
        ),
        Setting(
            "server.mountPoint", \.site.mountPoint, .mountPoint(),
            "prefix of all paths, such as /images, for a proxy that forwards paths unchanged; /health, /ready and /metrics work with and without it"
        ),
        Setting(
            "server.cacheControl", \.freshness, .clientFreshness(),
            "Cache-Control of variants, in seconds; presets overrides it for individual presets; if empty, it is "
                + "derived from the origin's response"),
        Setting(
            "server.idleSeconds", \.listener.idleSeconds, .seconds,
            "time in seconds after which an idle connection is closed"),
        Setting(
            "server.cors", \.site.crossOrigin, .origins(),
            "origins whose scripts may read responses, such as https://example.org, or *; not needed to show pictures"
        ),
        Setting(
            "server.trustedProxies", \.listener.proxies, .proxies(),
            "proxies whose Forwarded or X-Forwarded-For is trusted: addresses, CIDR blocks, or `unix`; empty by default, because clients can forge these fields"
        ),
        Setting(
            "server.playground", \.playground, .unset(as: false, .bool),
            "serve the page at /; if not set, it is served if unsigned URLs are served and only this machine can connect"
        ),
    ]

    /// Settings that have been removed, and what to use instead.
    static let removed = Dictionary(
        uniqueKeysWithValues: ["server.tls", "server.http2"].map {
            ($0, "`\($0)` has been removed; use nginx, Caddy or HAProxy for TLS and HTTP/2 (docs/server.md, `TLS`)")
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
