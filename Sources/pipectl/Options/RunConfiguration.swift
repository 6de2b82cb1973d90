import Glibc
import ImageServer
import ImageServerNIO
import Pipeline
import Variants

/// Everything that settings fill (`SettingCatalogue`); its defaults are those of the library's configuration types.
struct RunConfiguration: Sendable {
    enum Isolation: String, Sendable, CaseIterable { case workers, inProcess }

    var pipeline: PipelineConfiguration = {
        var pipeline = PipelineConfiguration()
        // Some seconds of renders on two cores.
        pipeline.queue = 256
        return pipeline
    }()
    var workers = WorkerConfiguration()
    var isolation = Isolation.workers
    var presets: [String: String] = [:]
    var stepLimit = Recipe.stepLimit
    var site = ServerConfiguration()
    var listener = ListenerConfiguration()
    /// Texts of the recipes that the server makes; empty: all.
    var allowedRecipes: [String] = []
    /// nil to decide by the other settings: on if only this machine can connect, and may have unsigned URLs.
    var playground: Bool?
    /// Names of steps that clients may write; empty: all.
    var recipeSteps: [String] = []
    var strictSizes = false
    var keys: [SigningKey] = []
    var keysFile: String?
    var baseURLs: [String: String] = [:]
    /// Requests a second of one client that miss the caches; 0: no limit.
    var requestRate = 0.0
    var fallback: String?
    var forwardFields: [String] = []
    var forwardMethods: [String]?
    /// Where operators come in; nil if they have no address of their own.
    var adminListen: ListenAddress?
    var hasMetrics = true
    var drainSeconds = 0.0
    var trustsHEIF = false
    var logLevel = LogLine.Threshold.warning
    var logFormat = LogFormat.text

    static let processors = Int(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    /// The budget for originals in memory; that for their records follows it.
    var memoryOfOriginals: Int {
        get { pipeline.memory.originals }
        set {
            pipeline.memory.originals = newValue
            pipeline.memory.records = newValue / 10
        }
    }

    /// The configuration of a pipeline; its workers run this same executable.
    func pipelineConfiguration() throws(CommandFailure) -> PipelineConfiguration {
        var configuration = pipeline
        configuration.logger = Console.logger
        configuration.renderThreads = workers.count
        if isolation == .workers {
            var workers = workers
            workers.executable = "/proc/self/exe"
            do throws(RenderError) { try workers.checkMemory() } catch { throw CommandFailure(.usage, error.message) }
            configuration.isolation = .workers(workers)
        }
        for (host, own) in configuration.fetch.hosts where own.isInsecure {
            Console.error("pipectl: \(host): its certificate is not checked (`hosts`: insecure)")
        }
        return configuration
    }

    func recipePresets() throws(CommandFailure) -> RecipePresets {
        do throws(RecipeError) {
            return try RecipePresets(presets, stepLimit: stepLimit)
        } catch {
            throw CommandFailure(.usage, "presets: \(error.description)")
        }
    }

    /// The configuration of the server; settings that depend on each other are checked here.
    func serverConfiguration(_ settings: Settings) throws(CommandFailure) -> ServerConfiguration {
        var site = site
        site.presets = try recipePresets()
        if !allowedRecipes.isEmpty {
            var recipes: Set<Recipe> = []
            for text in allowedRecipes {
                do throws(RecipeError) {
                    recipes.insert(try Recipe(text, presets: site.presets))
                } catch {
                    let origin = settings.origin("recipes.allow")
                    throw CommandFailure(.usage, "\(origin): recipe `\(text)`: \(error.description)")
                }
            }
            site.recipes.allowed = recipes
        }
        try fillAccess(of: &site, settings)
        site.forwarded = ForwardedFields(forwardFields)
        do throws(ForwardedMethods.Refusal) {
            site.methods = try ForwardedMethods(
                forwardMethods, fields: site.forwarded, isKnown: HTTPServer.reads(method:))
        } catch {
            throw CommandFailure(.usage, "\(settings.origin("forwardMethods")): \(error.text)")
        }
        site.caching = pipeline.caching
        site.signature.servesThisMachine =
            site.signature.keys.isEmpty && !settings.isSet("allowUnsigned") && isForThisMachine
        site.playground =
            playground
            ?? (isForThisMachine && (site.signature.allowUnsigned || site.signature.servesThisMachine))
        return site
    }
}
