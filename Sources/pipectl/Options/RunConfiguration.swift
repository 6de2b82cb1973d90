import Glibc
import Pipeline
import Variants

/// Everything that settings fill (`SettingCatalogue`); its defaults are those of the library's configuration types.
struct RunConfiguration: Sendable {
    enum Isolation: String, Sendable, CaseIterable { case workers, inProcess }

    var pipeline = PipelineConfiguration()
    var workers = WorkerConfiguration()
    var isolation = Isolation.workers
    var presets: [String: String] = [:]
    var stepLimit = Recipe.stepLimit
    var server = ServerSettings()
    /// Texts of the recipes that the server makes; empty: all.
    var allowedRecipes: [String] = []
    var forwardFields: [String] = []
    var forwardMethods: [String]?
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

    /// The largest original that is fetched and rendered.
    var bytesOfOriginal: Int {
        get { pipeline.limits.bytes }
        set {
            pipeline.limits.bytes = newValue
            pipeline.fetch.byteLimit = newValue
        }
    }

    /// The configuration of a pipeline; its workers run this same executable.
    func pipelineConfiguration() throws(CommandFailure) -> PipelineConfiguration {
        var configuration = pipeline
        configuration.warn = { Console.error("pipectl: " + $0) }
        configuration.renderThreads = workers.count
        if isolation == .workers {
            var workers = workers
            workers.executable = "/proc/self/exe"
            workers.warn = configuration.warn
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

    /// The settings of the server; those that depend on each other are checked here.
    func serverSettings(_ settings: Settings, isVerbose: Bool) throws(CommandFailure) -> ServerSettings {
        var server = server
        server.presets = try recipePresets()
        if !allowedRecipes.isEmpty {
            server.recipes = []
            for text in allowedRecipes {
                do throws(RecipeError) {
                    server.recipes?.insert(try Recipe(text, presets: server.presets))
                } catch {
                    let origin = settings.origin("recipes.allow")
                    throw CommandFailure(.usage, "\(origin): recipe `\(text)`: \(error.description)")
                }
            }
        }
        server.forwarded = ForwardedFields(forwardFields)
        do throws(ForwardedMethods.Refusal) {
            server.methods = try ForwardedMethods(forwardMethods, fields: server.forwarded)
        } catch {
            throw CommandFailure(.usage, "\(settings.origin("forwardMethods")): \(error.text)")
        }
        server.caching = pipeline.caching
        server.logsRequests = isVerbose || logLevel.includesRequests
        return server
    }
}
