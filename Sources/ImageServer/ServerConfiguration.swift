package import HTTPCaching
package import Variants

/// What a site serves, and to whom.
package struct ServerConfiguration: Sendable {
    package var signature = Signature(allowUnsigned: false)
    /// Formats that `auto` may choose, best first.
    package var formats: [ImageFormat] = [.jxl, .webp]
    /// Which recipes the site makes.
    package var recipes = RecipeRules()
    package var presets = RecipePresets.none
    /// Names for URLs, so that a source may be `name:path`.
    package var baseURLs = BaseURLs.none
    /// How many requests that miss the caches each client may make; nil if there is no limit.
    package var rate: RateLimit?
    /// Sent with a 404 or 422 of a variant in place of the problem's text; nil if there is none.
    package var fallback: FallbackPicture?
    /// The client's fields that go to the origin.
    package var forwarded = ForwardedFields([])
    /// Methods besides GET and HEAD that go to the origin.
    package var methods = ForwardedMethods.none
    /// Whether the site asks the origin if a client's request says `no-cache`.
    package var honoursClientNoCache = false
    /// The pipeline's own rules, from which answers derive their freshness.
    package var caching = CachingConfiguration()

    package init() {}
}
