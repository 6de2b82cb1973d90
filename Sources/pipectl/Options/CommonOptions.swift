import ArgumentParser
import Glibc
import Pipeline
import Variants

/// The options that every command takes, and the settings that result from them.
struct CommonOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Cache folder (default $XDG_CACHE_HOME/image-pipeline).", valueName: "dir"))
    var cache: String?
    @Option(help: ArgumentHelp("Settings file (YAML).", valueName: "file"))
    var config: String?
    @Option(
        name: .customLong("set"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Set one setting, as JSON or a bare word; repeatable.", valueName: "key=value"))
    var assignments: [String] = []
    @Flag(name: .shortAndLong, help: "Print no progress and no summary on stderr.")
    var quiet = false

    /// Rejects `-`, which other programs read as stdin: a source must be a URL or a file, since results are cached
    /// under its identity.
    static func checkSource(_ source: String) throws(ValidationError) {
        guard source == "-" else { return }
        throw ValidationError(
            "pictures cannot be read from stdin; give an http(s) URL or a file (for a file named -, write ./-)"
        )
    }

    /// The settings in force: a flag overrides the environment, which overrides the file, which overrides the default.
    ///
    /// - Parameter flags: settings given by a command's own flags: flag, setting, value.
    func settings(
        flags: [(flag: String, key: String, value: String)] = []
    ) throws(CommandFailure) -> Settings {
        do throws(SettingError) {
            return try Settings(
                assignments: assignments, flags: flags + (cache.map { [("--cache", "cache", $0)] } ?? []),
                environment: Self.environment(), file: config)
        } catch {
            throw CommandFailure(.usage, error.description)
        }
    }

    /// A pipeline configured by the settings; by default for one request at a time.
    func pipeline(_ settings: Settings, lookupThreads: Int = 1) throws(CommandFailure) -> ImagePipeline {
        var configuration = try PipelineSettings.configuration(settings)
        configuration.lookupThreads = lookupThreads
        do throws(PipelineError) {
            return try ImagePipeline(configuration)
        } catch {
            throw CommandFailure(error)
        }
    }

    private static func environment() -> [String: String] {
        var result: [String: String] = [:]
        var entry = environ
        while let text = entry.pointee {
            let line = String(cString: text)
            if let equals = line.firstIndex(of: "=") {
                result[String(line[..<equals])] = String(line[line.index(after: equals)...])
            }
            entry += 1
        }
        return result
    }
}

/// The `-v` flag, for commands that have more to report.
struct VerboseOption: ParsableArguments {
    @Flag(name: [.customShort("v"), .customLong("verbose")], help: "Print more on stderr.")
    var isOn = false
}

/// Turns settings into the pipeline's configuration.
enum PipelineSettings {
    /// - Parameter serves: whether the pipeline is for a server.
    static func configuration(
        _ settings: Settings, serves: Bool = false
    ) throws(CommandFailure) -> PipelineConfiguration {
        // A single pass over many sources requests nothing twice except an original with several recipes, so large
        // memory tiers would be wasted: the defaults are small. Values that the user set apply unchanged.
        var configuration = PipelineConfiguration(
            memory: .init(
                originals: settings.bytes("memory.originals", builtIn: 8_000_000),
                variants: settings.bytes("memory.variants", builtIn: 2_000_000),
                pixels: settings.bytes("memory.pixels"),
                records: settings.bytes("memory.records", builtIn: 800_000)))
        let folder = settings.cacheFolder
        configuration.cacheFolder = folder
        let disk = settings.diskBudgets(folder: folder)
        configuration.disk = .init(originals: disk.originals, variants: disk.variants)
        configuration.freeSpace = disk.freeSpace
        configuration.fsync = settings.bool("disk.fsync")
        configuration.masks = settings.masksFolder
        configuration.overlays = settings.overlaysFolder
        configuration.acceptedTypes = settings.list("acceptedTypes")
        configuration.quality = RenderQuality(rawValue: settings.renderQuality) ?? .balanced
        configuration.renderThreads = settings.renderWorkers(serves: serves)
        if settings.text("render.isolation") != "inProcess" {
            configuration.isolation = .workers(try workers(settings, serves: serves))
        }
        configuration.caching.isPrivate = settings.bool("private")
        let maximumAge = settings.integer("defaultMaxAge")
        configuration.caching.defaultMaxAge = maximumAge > 0 ? maximumAge : nil
        let errorAge = settings.integer("errorMaxAge")
        configuration.caching.errorMaxAge = errorAge > 0 ? errorAge : nil
        configuration.caching.errorAttempts = settings.integer("errorAttempts")
        configuration.limits.pixels = settings.integer("limits.pixels")
        configuration.limits.bytes = settings.bytes("limits.bytes")
        configuration.limits.frames = settings.integer("limits.frames")
        configuration.limits.scans = settings.integer("limits.scans")
        configuration.limits.outputEdge = settings.integer("limits.outputEdge")
        configuration.limits.profileBytes = settings.bytes("limits.profileBytes")
        configuration.limits.seconds = settings.number("limits.seconds")
        configuration.limits.encodeSeconds = settings.number("limits.encodeSeconds")
        // With no other clients waiting for a worker, a slow encoder may take longer.
        if !serves, case .builtIn = settings.origin("limits.encodeSeconds") { configuration.limits.encodeSeconds = 60 }
        configuration.limits.formats = try decoders(settings)
        configuration.fetch.slots = settings.integer("fetch.slots")
        configuration.fetch.perHost = settings.integer("fetch.perHost")
        configuration.fetch.connectSeconds = settings.number("fetch.connectSeconds")
        configuration.fetch.headerSeconds = settings.number("fetch.headerSeconds")
        configuration.fetch.totalSeconds = settings.number("fetch.totalSeconds")
        configuration.fetch.stallSeconds = settings.number("fetch.stallSeconds")
        configuration.fetch.redirects = settings.integer("fetch.redirects")
        configuration.fetch.http2 = settings.bool("fetch.http2")
        configuration.fetch.retries = settings.integer("retries")
        configuration.fetch.byteLimit = configuration.limits.bytes
        switch settings.allowPrivateAddresses {
        case .none: break
        case .all: configuration.fetch.allowPrivateAddresses = .all
        case .list(let entries):
            var rules: [AddressRule.Entry] = []
            for text in entries {
                guard let rule = AddressRule.Entry(text) else {
                    throw CommandFailure(
                        .usage, "allowPrivateAddresses: `\(text)` is not an address or CIDR with an optional port")
                }
                rules.append(rule)
            }
            configuration.fetch.allowPrivateAddresses = .list(rules)
        }
        do throws(SettingError) { try settings.apply(to: &configuration.fetch) } catch {
            throw CommandFailure(.usage, error.description)
        }
        for (host, own) in configuration.fetch.hosts where own.isInsecure {
            Console.error("pipectl: \(host): its certificate is not checked (`hosts`: insecure)")
        }
        configuration.logger = Console.logger
        return configuration
    }

    /// The formats that the setting `decoders` allows.
    private static func decoders(_ settings: Settings) throws(CommandFailure) -> Set<ImageFormat> {
        var formats: Set<ImageFormat> = []
        for name in settings.list("decoders") {
            guard let format = ImageFormat(name: name, among: ImageFormat.decodable) else {
                let known = ImageFormat.decodable.map(\.rawValue).joined(separator: ", ")
                throw CommandFailure(.usage, "\(settings.origin("decoders")): `decoders` takes \(known), not `\(name)`")
            }
            formats.insert(format)
        }
        return formats
    }

    /// Workers that run this same executable.
    private static func workers(
        _ settings: Settings, serves: Bool
    ) throws(CommandFailure) -> WorkerConfiguration {
        var workers = WorkerConfiguration()
        workers.executable = "/proc/self/exe"
        workers.count = settings.renderWorkers(serves: serves)
        workers.memory = settings.bytes("limits.workerMemory")
        do throws(RenderError) { try workers.checkMemory() } catch { throw CommandFailure(.usage, error.message) }
        // Tests of defective decoders inject faults with this variable (docs/workers.md); workers inherit no other.
        let faults = WorkerConfiguration.faultsVariable
        if settings.environment[faults] != nil { workers.environment = [faults + "=1"] }
        return workers
    }

    /// Parses a recipe with the configured presets; an invalid one is a usage error.
    static func recipe(_ text: String, _ presets: RecipePresets) throws(CommandFailure) -> Recipe {
        do throws(RecipeError) {
            return try Recipe(text, presets: presets)
        } catch {
            throw CommandFailure(.usage, "recipe `\(text)`: \(error.description)")
        }
    }

    static func presets(_ settings: Settings) throws(CommandFailure) -> RecipePresets {
        do throws(RecipeError) {
            return try RecipePresets(settings.presets, stepLimit: settings.integer("limits.steps"))
        } catch {
            throw CommandFailure(.usage, "presets: \(error.description)")
        }
    }
}

extension ImageFormat {
    /// Finds one of several formats by its name or a file extension, ignoring case; nil if none matches.
    init?(name: String, among formats: [ImageFormat]) {
        let name = name.lowercased()
        guard let format = formats.first(where: { $0.rawValue == name || $0.fileExtensions.contains(name) }) else {
            return nil
        }
        self = format
    }
}

extension PipelineError {
    /// The error with a hint at what the user probably meant by `source`, if there is one.
    func hinting(at source: String) -> PipelineError {
        guard code == .notFound || code == .fetchFailed, let hint = SourceHint.text(for: source) else { return self }
        var error = self
        error.message += "; " + hint
        return error
    }
}

extension CommandFailure {
    init(_ error: PipelineError) {
        self.init(ProgramExit(errorCode: error.code.name), error.message)
    }
}
