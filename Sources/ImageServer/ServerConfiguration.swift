public import HTTPCaching
public import Variants

/// Configures a `Site`: which pictures it serves, to which clients, and with which header fields.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// var configuration = ServerConfiguration()
/// configuration.mountPoint = "/images"
/// configuration.keys = [try SigningKey(id: "k1", hex: "000102030405060708090a0b0c0d0e0f")]
/// configuration.baseURLs["photos"] = "https://images.example.org/photos"
/// configuration.recipes.presetsOnly = true
/// configuration.freshness = ClientFreshness(maxAge: .seconds(3600))
/// let site = try Site(pipeline: pipeline, configuration: configuration)
/// ```
///
/// `Site.init` checks the values, and throws an `InvalidSetting` that names the invalid property.
public struct ServerConfiguration: Sendable {
    package var signature = Signature(allowUnsigned: false)
    /// Whether paths may contain the word `unsigned` instead of a signature. If true, anyone can request any picture of
    /// any source. Defaults to false.
    public var allowUnsigned: Bool {
        get { signature.allowUnsigned }
        set { signature.allowUnsigned = newValue }
    }
    /// Keys that verify signatures (docs/signing.md). Empty by default. If there are no keys and `allowUnsigned` is
    /// false, every picture is refused.
    public var keys: [SigningKey] {
        get { signature.keys }
        set { signature.keys = newValue }
    }
    /// Formats that `auto` may choose, best first. Defaults to JPEG XL, WebP and AVIF. Put AVIF before WebP if the
    /// pipeline's `effort` is `thorough`.
    public var formats: [ImageFormat] = Negotiation.preferred(.quick)
    /// The recipes that the site renders. By default, all recipes are rendered.
    public var recipes = RecipeRules()
    /// The URLs of other systems that the site understands, by the name of the system, for example `next` or `iiif`.
    /// Each value is a map. Its member `path` is the path of the URLs, and `docs/grammars.md` describes the other
    /// members. Empty by default.
    ///
    /// ```swift
    /// var configuration = ServerConfiguration()
    /// configuration.grammars["next"] = ["path": "/_next/image", "unsigned": true, "widths": [640, 1080]]
    /// ```
    public var grammars: [String: GrammarValue] = [:]
    /// The grammars of the picture routes. `Site.init` adds the members of `grammars`.
    package var pictureRoutes: [any Grammar] = Grammars.own
    /// The enabled routes. If nil, the default, all routes are enabled. However, if `recipes` restricts what clients
    /// can render, only `variant` is enabled, because originals would bypass the restriction.
    public var routes: Set<ImageRoute>?
    /// The enabled routes, with the default applied.
    package var openRoutes: Set<ImageRoute> {
        routes ?? (recipes.isRestricted ? [.variant] : Set(ImageRoute.allCases))
    }
    /// The presets of `pipectl`, which a reload may change. If nil, the default, the pipeline's presets apply.
    package var presets: RecipePresets?
    /// Base URLs by name, so that a source may be written as `name:path`. A base is an http, https or s3 URL without
    /// credentials or a query, or `file:///PATH` for a folder on this machine. If a folder is replaced later, by
    /// changing a link or by a rename, the next request opens the new folder. Empty by default.
    public var baseURLs: [String: String] = [:]
    /// Whether symbolic links in folders of `baseURLs` may lead to other places within the same folder. Defaults to
    /// false.
    public var followsFolderLinks = false
    /// The name in `baseURLs` for sources without a name. With `photos`, the source `a/b.jpg` means `photos:a/b.jpg`.
    /// If nil, the default, such sources are refused.
    public var defaultBase: String?
    /// The secret with which operators purge, read `/metrics` and see details of errors. It must have at least 16
    /// characters of visible ASCII. If nil, the default, purges are refused.
    public var adminToken: String?
    /// The token that clients need if the server has no keys and serves only this machine, or nil if no token is
    /// needed.
    package var accessToken: AccessToken?
    /// The header fields that carry purge tags on variants, for downstream caches. Defaults to `off`.
    public var tags = SentTags.off
    /// The `Cache-Control` of variants. If nil, the default, the directives are derived from the origin's response.
    public var freshness: ClientFreshness?
    /// The `Cache-Control` of variants of a preset (`@name`, optionally followed by `RecipeRules.suffixes`), by preset
    /// name. Takes precedence over `freshness`.
    public var presetFreshness: [String: ClientFreshness] = [:]
    /// How requests use stored responses: `protocol`, the default, or `cacheElseLoad`.
    public var policy = CachePolicy.protocol
    /// The limit on each client's requests that miss the caches. Defaults to nil (no limit).
    public var rate: RateLimit?
    /// A picture in any decodable format that replaces the error response if a variant fails with 404 or 422. The
    /// picture is rendered with the request's recipe. Defaults to nil.
    public var fallback: [UInt8]?
    /// The status of responses with `fallback`: 200, or 400…599. If nil, the default, the status of the error is sent,
    /// so that clients do not mistake the picture for the variant.
    public var fallbackStatus: Int?
    /// Header fields that are added to pictures, originals and descriptions, by name. Names must be tokens, and values
    /// must consist of visible ASCII and spaces. Empty by default.
    public var fields: [String: String] = [:]
    /// The pages that may show pictures from this server, as patterns such as `*.example.org` without a path. The
    /// server's own pages and requests without `Referer` are always allowed. If nil, the default, every page may show
    /// them.
    public var referrers: [String]?
    /// The client's header fields that are forwarded to the origin: names (case-insensitive), or `*` for all. Empty by
    /// default, so that clients share responses.
    public var forwardedFields: [String] = []
    /// Methods other than GET and HEAD that unsigned paths of `/original` forward to the origin, in uppercase, or `*`
    /// for all. CONNECT and TRACE are never forwarded. If nil, the default, all methods are forwarded if
    /// `forwardedFields` is `*`, and none otherwise.
    public var forwardedMethods: [String]?
    /// Whether a client's `Cache-Control: no-cache` makes the site contact the origin. Defaults to false, so that
    /// clients cannot force requests to the origin.
    public var honorsClientNoCache = false
    /// The origins whose scripts may read responses (CORS), for example `https://example.org`, or `*` for all. Empty by
    /// default. Pages of every origin may show pictures.
    public var crossOrigin: [String] = []
    /// Detects requests that this server sent itself.
    package var loop = LoopGuard()

    /// Whether the site has a page at `/` for trying recipes and inspecting the caches, with sample pictures as
    /// sources. Defaults to false.
    public var playground = false
    /// The state that `/ready` reports. Keep a reference, and call `end` when the program begins to stop.
    public var readiness = Readiness()
    /// The metrics that `/metrics` shows to operators, in addition to process metrics. Pass the same object to
    /// `PipelineConfiguration.metrics`. If nil, the default, `/metrics` responds with 404.
    public var metrics: PrometheusMetrics?
    /// The path prefix under which another server mounts the site, without a trailing slash, for example `/images`.
    /// Signatures cover only the part of the path after the prefix. Empty by default.
    public var mountPoint = ""
    /// Whether clients may send a picture as the body of `POST /variant/{signature}/{recipe}`, of at most
    /// `RenderLimits.bytes`. Defaults to false.
    public var uploads = false
    /// The maximum length of a request body that the site reads, in bytes, except for uploads. Defaults to 64 KiB.
    public var maxBodyBytes = 64 << 10

    /// Creates a configuration with the defaults. It refuses every picture until `keys` or `allowUnsigned` is set.
    public init() {}
}
