public import HTTPCaching
public import Variants

/// What a site serves, and to whom.
public struct ServerConfiguration: Sendable {
    package var signature = Signature(allowUnsigned: false)
    /// Whether paths may have the word `unsigned` in place of a signature: anybody can then have any picture made of any
    /// source. Default false.
    public var allowUnsigned: Bool {
        get { signature.allowUnsigned }
        set { signature.allowUnsigned = newValue }
    }
    /// Keys whose signatures are accepted (docs/signing.md). Default none: with neither keys nor `allowUnsigned` every
    /// picture is refused.
    public var keys: [SigningKey] {
        get { signature.keys }
        set { signature.keys = newValue }
    }
    /// Formats that `auto` may choose, best first; default JPEG XL, WebP, AVIF. AVIF belongs before WebP if
    /// the pipeline's `effort` is `thorough`.
    public var formats: [ImageFormat] = Negotiation.preferred(.quick)
    /// Which recipes the site makes; default all.
    public var recipes = RecipeRules()
    /// The routes that are open. Default nil: all, but `variant` alone if `recipes` restricts what is made, since originals
    /// would circumvent that.
    public var routes: Set<ImageRoute>?
    /// `routes` with its default applied.
    package var openRoutes: Set<ImageRoute> {
        routes ?? (recipes.isRestricted ? [.variant] : Set(ImageRoute.allCases))
    }
    /// Named recipes; by default `PipelineConfiguration.presets`.
    public var presets = RecipePresets.none
    /// Names for URLs, so that a source may be `name:path`; default none.
    public var baseURLs = BaseURLs.none
    /// What operators prove themselves with; nil if purges are refused.
    package var adminToken: AdminToken?
    /// The fields that carry tags on variants.
    package var tags = SentTags.off
    /// The `Cache-Control` of variants; by default the server derives it from the origin's fields.
    public var freshness = ClientFreshness()
    /// How far requests use what is stored: `protocol`, the default, or `cacheElseLoad`.
    public var policy = CachePolicy.protocol
    /// How many requests that miss the caches each client may make; default nil: any number.
    public var rate: RateLimit?
    /// Sent with a 404 or 422 of a variant in place of the problem's text, rendered by the request's recipe; default nil.
    public var fallback: FallbackPicture?
    /// Fields that pictures, originals and descriptions carry besides the server's own; default none.
    public var fields = AddedFields.none
    /// The pages that may show what the server sends; default all.
    public var referrers = ReferrerRule.all
    /// The client's fields that go to the origin.
    package var forwarded = ForwardedFields([])
    /// Methods besides GET and HEAD that go to the origin.
    package var methods = ForwardedMethods.none
    /// Whether the site asks the origin if a client's request says `no-cache`.
    package var honoursClientNoCache = false
    /// Which pages of other origins may read answers with scripts.
    package var crossOrigin = CrossOriginRule.none
    /// Recognises requests of this server to itself.
    package var loop = LoopGuard()

    /// Whether there is a page at `/` to try recipes and to look at the caches, and whether its samples are sources.
    package var playground = false
    /// Whether the server takes work; ended when it is asked to stop.
    package var readiness = Readiness()
    /// What `/metrics` shows; nil if there are none.
    package var metrics: PrometheusMetrics?
    /// The path below which another server mounts the site, for example `/images`; it ends without a slash. Signatures
    /// cover what follows it. Default empty.
    public var mountPoint = ""
    /// Bytes of the longest request body that the site reads; default 64 KiB.
    public var bodyLimit = 64 << 10

    public init() {}
}
