package import HTTPCaching
package import Variants

/// What a site serves, and to whom.
package struct ServerConfiguration: Sendable {
    package var signature = Signature(allowUnsigned: false)
    /// Formats that `auto` may choose, best first.
    package var formats: [ImageFormat] = [.jxl, .webp]
    /// Recipes that the site renders; nil if it renders all.
    package var recipes: Set<Recipe>?
    package var presets = RecipePresets.none
    /// What operators prove themselves with; nil if purges are refused.
    package var adminToken: AdminToken?
    /// The fields that carry tags on variants.
    package var tags = SentTags.off
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
