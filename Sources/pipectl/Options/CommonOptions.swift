import ArgumentParser
import Glibc
import Pipeline
import PipelineSupport
import Variants

/// The options that every command takes, and the settings that result from them.
struct CommonOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Cache folder (default $XDG_CACHE_HOME/image-pipeline).", valueName: "dir"),
        completion: .directory)
    var cache: String?
    @Option(help: ArgumentHelp("Settings file (YAML).", valueName: "file"), completion: .file())
    var config: String?
    @Option(
        name: .customLong("set"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Set one setting, as JSON or a bare word; repeatable.", valueName: "key=value"),
        completion: .setting)
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

    /// The settings in force, whatever is wrong with them: making a configuration of them throws it, with what it finds
    /// itself.
    ///
    /// - Parameter flags: settings given by a command's own flags: flag, setting, value.
    func collectedSettings(flags: [(flag: String, key: String, value: String)] = []) -> Settings {
        .collected(
            assignments: assignments, flags: flags + (cache.map { [("--cache", "cache", $0)] } ?? []),
            environment: Self.environment(), file: config)
    }

    /// The configuration that the settings lead to in a command other than `serve`.
    ///
    /// - Parameter prefixes: only settings whose names begin with one of these.
    func configuration(only prefixes: [String] = [""]) throws(SettingErrors) -> RunConfiguration {
        try collectedSettings().configuration(only: prefixes)
    }

    /// Runs `work` with a pipeline, by default for one request at a time, and shuts it down however `work` ends.
    func withPipeline<Value>(
        _ configuration: RunConfiguration, lookupThreads: Int = 1, _ work: (ImagePipeline) async throws -> Value
    ) async throws -> Value {
        var configuration = try configuration.pipelineConfiguration()
        configuration.lookupThreads = lookupThreads
        let pipeline = try pipeline(configuration)
        let result = await Result(of: { try await work(pipeline) })
        await pipeline.shutdown()
        return try result.get()
    }

    /// A pipeline; an error of the default cache folder says how to choose another.
    func pipeline(_ configuration: PipelineConfiguration) throws(PipelineError) -> ImagePipeline {
        do throws(PipelineError) {
            return try ImagePipeline(configuration)
        } catch {
            guard error.code == .cacheUnavailable, !collectedSettings().isSet("cache") else { throw error }
            var error = error
            error.message += "; this is the default cache folder: name another with --cache DIR or XDG_CACHE_HOME"
            throw error
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

extension Recipe {
    /// Parses a recipe with the configured presets; an invalid one is a usage error.
    init(usage text: String, presets: RecipePresets) throws(CommandFailure) {
        do throws(RecipeError) {
            try self.init(text, presets: presets)
        } catch {
            throw CommandFailure(.usage, error.message(of: text))
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
