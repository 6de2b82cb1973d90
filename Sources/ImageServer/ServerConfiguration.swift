package import HTTPCaching
package import Variants

/// What a site serves, and to whom.
package struct ServerConfiguration: Sendable {
    package var signature: Signature
    /// Formats that `auto` may choose, best first.
    package var formats: [ImageFormat]
    /// Recipes that the site renders; nil if it renders all.
    package var recipes: Set<Recipe>?
    package var presets: RecipePresets
    /// The client's fields that go to the origin.
    package var forwarded: ForwardedFields
    /// Methods besides GET and HEAD that go to the origin.
    package var methods: ForwardedMethods
    /// Whether the site asks the origin if a client's request says `no-cache`.
    package var honoursClientNoCache: Bool
    /// The pipeline's own rules, from which answers derive their freshness.
    package var caching: CachingConfiguration

    package init(
        signature: Signature, formats: [ImageFormat], recipes: Set<Recipe>?, presets: RecipePresets,
        forwarded: ForwardedFields, methods: ForwardedMethods, honoursClientNoCache: Bool, caching: CachingConfiguration
    ) {
        self.signature = signature
        self.formats = formats
        self.recipes = recipes
        self.presets = presets
        self.forwarded = forwarded
        self.methods = methods
        self.honoursClientNoCache = honoursClientNoCache
        self.caching = caching
    }
}
