import HTTPCaching
import ImageServer
import ImageServerNIO
import Pipeline
import Variants

/// Turns settings into the configuration of the server.
struct ServerSettings: Sendable {
    var site: ServerConfiguration
    var listener: ListenerConfiguration
    /// Whether each request is logged.
    var logsRequests: Bool

    /// Reads and checks the settings, so that an invalid one ends the program before it listens.
    init(_ settings: Settings, caching: CachingConfiguration, isVerbose: Bool) throws(CommandFailure) {
        guard let listen = ListenAddress(settings.text("listen")) else {
            throw CommandFailure(
                .usage,
                "\(settings.origin("listen")): `\(settings.text("listen"))` is no HOST:PORT; "
                    + "write for example 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:8080")
        }
        listener = ListenerConfiguration(
            listen: listen, connections: settings.integer("server.connections"),
            headerBytes: max(1024, settings.bytes("server.headerBytes")),
            bodyBytes: settings.bytes("server.bodyBytes"), idleSeconds: settings.number("server.idleSeconds"))
        let formats = try Self.formats(settings)
        let presets = try PipelineSettings.presets(settings)
        let recipes = try Self.recipes(settings, presets)
        let forwarded = ForwardedFields(settings.list("forwardFields"))
        site = ServerConfiguration(
            signature: Signature(allowUnsigned: settings.bool("allowUnsigned")), formats: formats, recipes: recipes,
            presets: presets, forwarded: forwarded, methods: try Self.methods(settings, forwarded),
            honoursClientNoCache: settings.bool("honourClientNoCache"), caching: caching)
        // A line for each request is expensive on a busy server, so the default level leaves it out.
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

    private static func methods(
        _ settings: Settings, _ forwarded: ForwardedFields
    ) throws(CommandFailure) -> ForwardedMethods {
        let isBuiltIn = if case .builtIn = settings.origin("forwardMethods") { true } else { false }
        do throws(ForwardedMethods.Refusal) {
            return try ForwardedMethods(
                isBuiltIn ? nil : settings.list("forwardMethods"), fields: forwarded, isKnown: HTTPServer.reads(method:)
            )
        } catch {
            throw CommandFailure(.usage, "\(settings.origin("forwardMethods")): \(error.text)")
        }
    }
}
