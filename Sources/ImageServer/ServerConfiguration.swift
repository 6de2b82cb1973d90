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
    /// The client's fields that go to the origin.
    package var forwarded = ForwardedFields([])
    /// Methods besides GET and HEAD that go to the origin.
    package var methods = ForwardedMethods.none
    /// Whether the site asks the origin if a client's request says `no-cache`.
    package var honoursClientNoCache = false
    /// The pipeline's own rules, from which answers derive their freshness.
    package var caching = CachingConfiguration()

    /// Whether there is a page at `/` to try recipes and to look at the caches, and whether its samples are sources.
    package var playground = false

    package init() {}
}
