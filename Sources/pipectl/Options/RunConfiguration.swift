import Glibc
import ImageServer
import ImageServerNIO
import Pipeline
import PipelineFleet
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
    /// The bucket behind the caches; none if it has no name.
    var remote = RemoteConfiguration(bucket: "")
    var fleet: FleetConfiguration?
    var fleetSeconds = 2.0
    /// Where the queue of batches is, unless `--queue` names a server.
    var queue: RedisURL?
    /// Signs the entries of a queue.
    var queueKey: QueueKey?
    var workers = WorkerConfiguration()
    var isolation = Isolation.workers
    var presets: [String: String] = [:]
    var stepLimit = Recipe.stepLimit
    var site = ServerConfiguration()
    var listener = ListenerConfiguration()
    /// The formats that `auto` may choose, best first; nil for those of `render.effort`.
    var formats: [ImageFormat]?
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
    var followsLinks = false
    /// Requests a second of one client that miss the caches; 0: no limit.
    var requestRate = 0.0
    var fallback: String?
    var fallbackStatus: Int?
    var defaultBase = ""
    var watermark = ""
    var referrers: [HostPattern] = []
    var mountPoint = ""
    var forwardFields: [String] = []
    var forwardMethods: [String]?
    /// Where operators come in; nil if they have no address of their own.
    var adminListen: ListenAddress?
    var hasMetrics = true
    var drainSeconds = 0.0
    var trustsHEIF = false
    var logLevel = LogLine.Threshold.warning
    var logFormat = LogFormat.text
    var accessLog = AccessLog.off

    static let processors = Int(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    /// The budget for originals in memory; that for their records follows it.
    var memoryOfOriginals: Int {
        get { pipeline.memory.originals }
        set {
            pipeline.memory.originals = newValue
            pipeline.memory.records = newValue / 10
        }
    }

    /// What `remote.s3` says; the other settings of `remote` stay.
    var bucket: RemoteConfiguration {
        get { remote }
        set {
            (remote.bucket, remote.prefix) = (newValue.bucket, newValue.prefix)
            (remote.store, remote.asksInstance) = (newValue.store, newValue.asksInstance)
        }
    }

    /// The configuration of a pipeline; its workers run this same executable.
    func pipelineConfiguration() throws(CommandFailure) -> PipelineConfiguration {
        var configuration = pipeline
        configuration.logger = Console.logger
        configuration.renderThreads = workers.count
        if !remote.bucket.isEmpty { configuration.remote = remote }
        if var fleet {
            fleet.seconds = fleetSeconds
            configuration.fleet = fleet
        }
        if isolation == .workers {
            var workers = workers
            workers.executable = "/proc/self/exe"
            do throws(RenderError) { try workers.checkMemory() } catch { throw CommandFailure(.usage, error.message) }
            configuration.isolation = .workers(workers)
        }
        for (host, own) in configuration.fetch.hosts where own.isInsecure {
            Console.error("pipectl: \(host): its certificate is not checked (`hosts`: insecure)")
        }
        for (host, own) in configuration.fetch.hosts {
            var broken = HostFreshness.Directive.allCases.filter { own.freshness?.ignored.contains($0) == true }
                .map { "`\($0.rawValue)` is ignored" }
            if let least = own.freshness?.atLeast { broken.append("what it says of less than \(least) s is ignored") }
            if broken.isEmpty { continue }
            Console.error("pipectl: \(host): \(broken.joined(separator: ", ")), against HTTP (`hosts`: freshness)")
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

    /// Checks what every command would meet later.
    ///
    /// - Parameters:
    ///   - prefixes: of the settings that matter.
    func check(_ settings: Settings, _ prefixes: [String], _ errors: inout SettingErrors) {
        if prefixes.contains(where: "presets".hasPrefix) {
            let given = settings.given("presets")
            for (name, fault) in RecipePresets.faults(in: presets, stepLimit: stepLimit) {
                var fault = fault
                // It is the preset's name that was parsed, as the only step.
                fault.step = nil
                errors.add(given.bad(fault.description, member: given.index(of: name)))
            }
        }
        if prefixes.contains(where: "limits.workerMemory".hasPrefix), isolation == .workers {
            do throws(RenderError) { try workers.checkMemory() } catch {
                errors.add(
                    settings.given("limits.workerMemory").bad(error.message), following: "limits.workerMemory",
                    "render.isolation")
            }
        }
    }

    /// The configuration of the server, whatever is wrong: what cannot be used is left out.
    ///
    /// - Parameter errors: those found so far; further ones are added, also of settings that depend on each other.
    func serverConfiguration(_ settings: Settings, _ errors: inout SettingErrors) -> ServerConfiguration {
        var site = site
        // Faulty presets are among the errors.
        site.formats = formats ?? Negotiation.preferred(pipeline.effort)
        site.presets = (try? recipePresets()) ?? .none
        for name in site.freshness.presets.keys.sorted() where presets[name] == nil {
            errors.add(settings.given("server.cacheControl").bad("there is no preset `\(name)`"), following: "presets")
        }
        site.policy = pipeline.policy
        fillAccess(of: &site, settings, &errors)
        fillRecipes(of: &site, settings, &errors)
        site.forwarded = ForwardedFields(forwardFields)
        site.methods = methods(site.forwarded, settings, &errors)
        // Keys that were meant to be there, such as an empty `keysFile`, admit no request.
        site.signature.servesThisMachine =
            isForThisMachine && !["allowUnsigned", "keys", "keysFile"].contains(where: settings.isSet)
        site.playground =
            playground
            ?? (isForThisMachine && (site.signature.allowUnsigned || site.signature.servesThisMachine)
                && site.openRoutes.contains(.original))
        if let refusal = AccessNotice.refusal(site) {
            errors.add(
                SettingErrors(SettingError(.badValue, .builtIn, refusal)), following: "keys", "keysFile",
                "allowUnsigned", "listen")
        }
        return site
    }

    private func methods(
        _ fields: ForwardedFields, _ settings: Settings, _ errors: inout SettingErrors
    ) -> ForwardedMethods {
        func read(_ names: [String]?) throws(ForwardedMethods.Refusal) -> ForwardedMethods {
            try ForwardedMethods(names, fields: fields, isKnown: HTTPServer.reads(method:))
        }
        for (index, name) in (forwardMethods ?? []).enumerated() {
            do throws(ForwardedMethods.Refusal) { _ = try read([name]) } catch {
                errors.add(settings.given("forwardMethods").bad(error.text, member: index))
            }
        }
        // What is refused is among the errors.
        return (try? read(forwardMethods)) ?? site.methods
    }
}

extension Settings {
    /// The configuration of `serve`.
    ///
    /// - Parameter passed: listening sockets that the process was started with.
    /// - Throws: all that is wrong with the settings.
    func serving(_ passed: [Int32] = []) throws(SettingErrors) -> (RunConfiguration, ServerConfiguration) {
        var errors = errors
        let result = serving(passed, &errors)
        try errors.check()
        return result
    }

    /// Returns the configuration without the settings that are wrong.
    ///
    /// - Parameter errors: those found so far; further ones are added.
    func serving(
        _ passed: [Int32], _ errors: inout SettingErrors
    ) -> (RunConfiguration, ServerConfiguration) {
        var configuration = configuration(serves: true, &errors)
        configuration.listener.passed = passed
        // An eighth of what there is, and so much that one address may hold one of the longest originals, which gets three
        // quarters of its quarter.
        let longest = min(configuration.pipeline.limits.bytes, 1 << 40)
        configuration.listener.answerBytes = max(MachineMemory.bytes / 8, 6 * longest)
        return (configuration, configuration.serverConfiguration(self, &errors))
    }
}
