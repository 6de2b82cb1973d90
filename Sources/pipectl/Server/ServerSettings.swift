import Pipeline
import Variants

/// What the settings say about serving.
struct ServerSettings: Sendable {
    var listen: ListenAddress
    /// Clients at once; others are told 503.
    var connections: Int
    /// Bytes of all header fields of one request, and of any single one.
    var headerBytes: Int
    /// Bytes of the longest body of a request that is read.
    var bodyBytes: Int
    /// Seconds a connection may wait for a request, a request for the end of its head, and a part of an answer for
    /// being taken.
    var idleSeconds: Double
    var signature: Signature
    /// Formats `auto` may choose.
    var formats: [ImageFormat]
    /// Recipes that are made; nil: all.
    var recipes: Set<Recipe>?
    var presets: RecipePresets
    var forwarded: ForwardedFields
    /// Methods besides GET and HEAD that reach origins.
    var methods: ForwardedMethods
    /// Whether a client's `no-cache` makes us ask the origin.
    var honoursClientNoCache: Bool
    /// The pipeline's own, for what answers say about freshness.
    var caching: CachingConfiguration
    /// Whether each request is logged.
    var logsRequests: Bool

    /// Reads and checks them; a setting that does not fit ends the program before it listens.
    init(_ settings: Settings, caching: CachingConfiguration, isVerbose: Bool) throws(CommandFailure) {
        guard let listen = ListenAddress(settings.text("listen")) else {
            throw CommandFailure(
                .usage,
                "\(settings.origin("listen")): `\(settings.text("listen"))` is no HOST:PORT; "
                    + "write for example 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:8080")
        }
        self.listen = listen
        connections = settings.integer("server.connections")
        headerBytes = max(1024, settings.bytes("server.headerBytes"))
        bodyBytes = settings.bytes("server.bodyBytes")
        idleSeconds = settings.number("server.idleSeconds")
        signature = Signature(allowUnsigned: settings.bool("allowUnsigned"))
        formats = try Self.formats(settings)
        presets = try PipelineSettings.presets(settings)
        recipes = try Self.recipes(settings, presets)
        forwarded = ForwardedFields(settings.list("forwardFields"))
        let isBuiltIn = if case .builtIn = settings.origin("forwardMethods") { true } else { false }
        do throws(ForwardedMethods.Refusal) {
            methods = try ForwardedMethods(isBuiltIn ? nil : settings.list("forwardMethods"), fields: forwarded)
        } catch {
            throw CommandFailure(.usage, "\(settings.origin("forwardMethods")): \(error.text)")
        }
        honoursClientNoCache = settings.bool("honourClientNoCache")
        self.caching = caching
        // A line for each request costs a busy server much, so the default level is above it.
        logsRequests = isVerbose || ["trace", "debug", "info"].contains(settings.text("log.level"))
    }

    private static func formats(_ settings: Settings) throws(CommandFailure) -> [ImageFormat] {
        var formats: [ImageFormat] = []
        for name in settings.list("auto") {
            guard let format = ImageFormat(name: name, among: Negotiation.offered) else {
                let known = Negotiation.offered.map(\.rawValue).joined(separator: ", ")
                throw CommandFailure(
                    .usage, "\(settings.origin("auto")): `auto` takes \(known), not `\(name)`")
            }
            formats.append(format)
        }
        return formats
    }

    private static func recipes(
        _ settings: Settings, _ presets: RecipePresets
    ) throws(CommandFailure) -> Set<Recipe>? {
        let texts = settings.list("recipes.allow")
        guard !texts.isEmpty else { return nil }
        var recipes: Set<Recipe> = []
        for text in texts {
            do throws(RecipeError) {
                recipes.insert(try Recipe(text, presets: presets))
            } catch {
                throw CommandFailure(
                    .usage, "\(settings.origin("recipes.allow")): recipe `\(text)`: \(error.description)")
            }
        }
        return recipes
    }
}
