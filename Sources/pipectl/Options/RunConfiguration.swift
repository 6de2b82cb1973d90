import Glibc
import ImageServer
import ImageServerNIO
import Pipeline
import PipelineFleet
import Variants

/// The configuration that the settings fill (`SettingCatalog`), with the defaults of the library's configuration
/// types.
struct RunConfiguration: Sendable {
    enum Isolation: String, Sendable, CaseIterable { case workers, inProcess }
    enum DamagedOriginals: String, Sendable, CaseIterable { case refuse, accept }

    var pipeline: PipelineConfiguration = {
        var pipeline = PipelineConfiguration()
        // The limit corresponds to a few seconds of rendering on two cores.
        pipeline.maxWaiting = 256
        return pipeline
    }()
    /// The bucket that serves as the remote cache tier. An empty name means no bucket.
    var remote = RemoteConfiguration(bucket: "")
    var fleet: FleetConfiguration?
    var fleetSeconds = 2.0
    /// The server with the queue of batches, unless `--queue` specifies one.
    var queue: RedisURL?
    /// The key that signs queue entries.
    var queueKey: QueueKey?
    var workers = WorkerConfiguration()
    var isolation = Isolation.workers
    var presets: [String: String] = [:]
    var stepLimit = Recipe.stepLimit
    var site = ServerConfiguration()
    var listener = ListenerConfiguration()
    /// The formats that `auto` may choose, best first. If nil, they depend on `render.effort`.
    var formats: [ImageFormat]?
    /// The recipes that the server renders, as strings. If empty, all recipes are rendered.
    var allowedRecipes: [String] = []
    /// Whether the page is enabled. If nil, the page is enabled if only this machine can connect and unsigned URLs are
    /// served.
    var playground: Bool?
    var keysFile: String?
    var freshness = FreshnessSetting()
    var fallback: String?
    var watermark = ""
    /// The operators' address, or nil if they have no separate address.
    var adminListen: ListenAddress?
    var hasMetrics = true
    var drainSeconds = 0.0
    var trustsHEIF = false
    var logLevel = LogLine.Threshold.warning
    var logFormat = LogFormat.text
    var accessLog = AccessLog.off

    static let processors = Int(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    var damaged: DamagedOriginals {
        get { pipeline.rendering.limits.acceptsDamaged ? .accept : .refuse }
        set { pipeline.rendering.limits.acceptsDamaged = newValue == .accept }
    }

    /// The memory budget for originals. Setting it also sets the budget for their records.
    var memoryOfOriginals: Int {
        get { pipeline.memory.originals }
        set {
            pipeline.memory.originals = newValue
            pipeline.memory.records = newValue / 10
        }
    }

    /// The part of `remote` that `remote.s3` sets. The other settings of `remote` do not change.
    var bucket: RemoteConfiguration {
        get {
            var own = RemoteConfiguration(bucket: remote.bucket)
            (own.prefix, own.store, own.asksInstance) = (remote.prefix, remote.store, remote.asksInstance)
            return own
        }
        set {
            (remote.bucket, remote.prefix) = (newValue.bucket, newValue.prefix)
            (remote.store, remote.asksInstance) = (newValue.store, newValue.asksInstance)
        }
    }

    /// Returns the configuration of a pipeline. Its workers run this executable.
    func pipelineConfiguration(_ console: Console = .own) throws(CommandFailure) -> PipelineConfiguration {
        var configuration = pipeline
        configuration.logger = console.logger
        configuration.rendering.maxConcurrentRenders = workers.maxConcurrentRenders
        if !remote.bucket.isEmpty { configuration.remote = remote }
        if var fleet {
            fleet.trustPeriod = .seconds(fleetSeconds)
            configuration.fleet = fleet
        }
        if isolation == .workers {
            var workers = workers
            workers.executable = "/proc/self/exe"
            do throws(RenderError) { try workers.checkMemory() } catch { throw CommandFailure(.usage, error.message) }
            configuration.rendering.isolation = .workers(workers)
        }
        for (host, own) in configuration.fetch.hosts where own.isInsecure {
            console.error("pipectl: \(host): the certificate of this host is not verified (`insecure` in `hosts`)")
        }
        for (host, own) in configuration.fetch.hosts {
            var broken = HostFreshness.Directive.allCases.filter { own.freshness.ignored.contains($0) }
                .map { "`\($0.rawValue)` is ignored" }
            if let least = own.freshness.atLeast {
                broken.append("lifetimes below \(least) s are raised to \(least) s")
            }
            if broken.isEmpty { continue }
            console.error(
                "pipectl: \(host): \(broken.joined(separator: ", ")), contrary to the HTTP standard (`freshness` in `hosts`)"
            )
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

    /// Checks settings that would otherwise cause errors later, in every command.
    ///
    /// - Parameters:
    ///   - prefixes: The prefixes of the settings to check.
    func check(_ settings: Settings, _ prefixes: [String], _ errors: inout SettingErrors) {
        if prefixes.contains(where: "presets".hasPrefix) {
            let given = settings.given("presets")
            for (name, fault) in RecipePresets.faults(in: presets, stepLimit: stepLimit) {
                var fault = fault
                // The preset's name was parsed as the only step, so the number of the step is not useful.
                fault.step = nil
                errors.add(given.bad(fault.description, member: given.index(of: name)))
            }
        }
        let rendering = pipeline.rendering.limits
        if prefixes.contains(where: "svg".hasPrefix), rendering.svg == .raster, !rendering.formats.contains(.svg) {
            errors.add(settings.given("svg").bad("raster requires `svg` in `decoders`"), following: "svg", "decoders")
        }
        if prefixes.contains(where: "limits.workerMemory".hasPrefix), isolation == .workers {
            do throws(RenderError) { try workers.checkMemory() } catch {
                errors.add(
                    settings.given("limits.workerMemory").bad(error.message), following: "limits.workerMemory",
                    "render.isolation")
            }
        }
    }

    /// Returns the configuration of the server's site, and adds the errors in the settings to `errors`.
    func serverConfiguration(_ settings: Settings, _ errors: inout SettingErrors) -> ServerConfiguration {
        var site = site
        // Invalid presets have already been added to the errors.
        site.formats = formats ?? Negotiation.preferred(pipeline.rendering.effort)
        site.presets = try? recipePresets()
        (site.freshness, site.presetFreshness) = (freshness.rule, freshness.presets)
        for name in site.presetFreshness.keys.sorted() where presets[name] == nil {
            errors.add(
                settings.given("server.cacheControl").bad("there is no preset `\(name)`; add it to `presets`"),
                following: "presets")
        }
        site.policy = pipeline.policy
        fillAccess(of: &site, settings, &errors)
        fillRecipes(of: &site, settings, &errors)
        var mounted: [any MountableGrammar] = []
        do throws(InvalidSetting) { mounted = try site.mountedGrammars() } catch {
            errors.add(settings.given("grammars").bad(error.message), following: "grammars")
        }
        // If a setting for keys is present but empty, for example `keysFile`, the operator intended to use keys.
        // Unsigned requests are then refused.
        site.signature.servesThisMachine =
            isForThisMachine && !["allowUnsigned", "keys", "keysFile"].contains(where: settings.isSet)
            && !mounted.contains(where: \.decidesAccess)
        site.playground =
            playground
            ?? (isForThisMachine && (site.signature.allowUnsigned || site.signature.servesThisMachine)
                && site.openRoutes.contains(.original))
        if !mounted.contains(where: \.decidesAccess), let refusal = AccessNotice.refusal(site) {
            errors.add(
                SettingErrors(SettingError(.badValue, .builtIn, refusal)), following: "keys", "keysFile",
                "allowUnsigned", "listen")
        }
        return site
    }
}

extension Settings {
    /// Returns the configuration of `serve`.
    ///
    /// - Parameter passed: Listening sockets that were passed to the process at startup.
    /// - Throws: All errors in the settings.
    func serving(_ passed: [Int32] = []) throws(SettingErrors) -> (RunConfiguration, ServerConfiguration) {
        var errors = errors
        let result = serving(passed, &errors)
        try errors.check()
        return result
    }

    /// Returns the configuration without the invalid settings.
    ///
    /// - Parameter errors: The errors found so far. Further errors are added.
    func serving(
        _ passed: [Int32], _ errors: inout SettingErrors
    ) -> (RunConfiguration, ServerConfiguration) {
        var configuration = configuration(serves: true, &errors)
        configuration.listener.passed = passed
        // The budget is an eighth of the machine's memory, but at least enough for one address to hold one of the
        // longest originals. An address may use a quarter of the budget, and large bodies may use three quarters of
        // that quarter.
        let longest = min(configuration.pipeline.rendering.limits.bytes, 1 << 40)
        configuration.listener.answerBytes = max(MachineMemory.bytes / 8, 6 * longest)
        return (configuration, configuration.serverConfiguration(self, &errors))
    }
}
