import Pipeline
import Variants

/// What the settings say about serving.
struct ServerSettings: Sendable {
    var listen = ListenAddress(host: "127.0.0.1", port: 8080)
    /// Clients at once; others are told 503.
    var connections = 1024
    /// Bytes of all header fields of one request, and of any single one.
    var headerBytes = 16 << 10
    /// Bytes of the longest body of a request that is read.
    var bodyBytes = 64 << 10
    /// Seconds a connection may wait for a request, a request for the end of its head, and a part of an answer for
    /// being taken.
    var idleSeconds = 60.0
    var signature = Signature(allowUnsigned: false)
    /// Formats `auto` may choose.
    var formats: [ImageFormat] = [.jxl, .webp]
    /// Recipes that are made; nil: all.
    var recipes: Set<Recipe>?
    var presets = RecipePresets.none
    var forwarded = ForwardedFields([])
    /// Methods besides GET and HEAD that reach origins.
    var methods = ForwardedMethods.none
    /// Whether a client's `no-cache` makes us ask the origin.
    var honoursClientNoCache = false
    /// The pipeline's own, for what answers say about freshness.
    var caching = CachingConfiguration()
    /// Whether each request is logged.
    var logsRequests = false
}
