import ArgumentParser
import Glibc
import Pipeline
import PipelineSupport
import Variants

/// The options that all commands share, and the settings that result from them.
struct CommonOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Cache folder (default $XDG_CACHE_HOME/image-pipeline).", valueName: "dir"),
        completion: .directory)
    var cache: String?
    @Option(help: ArgumentHelp("Settings file (YAML).", valueName: "file"), completion: .file())
    var config: String?
    @Option(
        name: .customLong("set"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Set a setting to a JSON value or a bare word; repeatable.", valueName: "key=value"),
        completion: .setting)
    var assignments: [String] = []
    @Flag(name: .shortAndLong, help: "Do not print progress or a summary on standard error.")
    var quiet = false

    /// Returns the current settings, even if they contain errors. Creating a configuration from them throws these
    /// errors together with further ones.
    ///
    /// - Parameter flags: Settings given by flags of the command: flag, setting, value.
    func collectedSettings(
        flags: [(flag: String, key: String, value: String)] = [], environment: [String: String] = environment()
    ) -> Settings {
        .collected(
            assignments: assignments, flags: flags + (cache.map { [("--cache", "cache", $0)] } ?? []),
            environment: environment, file: config)
    }

    /// Returns the configuration for a command other than `serve`.
    ///
    /// - Parameter prefixes: The prefixes of the settings to read.
    func configuration(only prefixes: [String] = [""]) throws(SettingErrors) -> RunConfiguration {
        try collectedSettings().configuration(only: prefixes)
    }

    /// Runs `work` with a pipeline, by default for one request at a time, and shuts the pipeline down even if `work`
    /// throws.
    func withPipeline<Value>(
        _ configuration: RunConfiguration, lookups: Int = 1, _ work: (ImagePipeline) async throws -> Value
    ) async throws -> Value {
        var configuration = try configuration.pipelineConfiguration()
        configuration.maxConcurrentLookups = lookups
        let pipeline = try pipeline(configuration)
        let result = await Result(of: { try await work(pipeline) })
        await pipeline.shutdown()
        return try result.get()
    }

    /// Creates a pipeline. If the default cache folder causes an error, the message explains how to choose a different
    /// folder.
    func pipeline(_ configuration: PipelineConfiguration) throws(PipelineError) -> ImagePipeline {
        do throws(PipelineError) {
            return try ImagePipeline(configuration)
        } catch {
            guard error.code == .cacheUnavailable, !collectedSettings().isSet("cache") else { throw error }
            var error = error
            error.message +=
                "; this is the default cache folder; to use a different one, set --cache DIR or XDG_CACHE_HOME"
            throw error
        }
    }

    static func environment() -> [String: String] {
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
    @Flag(name: [.customShort("v"), .customLong("verbose")], help: "Print more on standard error.")
    var isOn = false
}

extension Recipe {
    /// Parses a recipe with the configured presets. An invalid recipe is a usage error.
    init(usage text: String, presets: RecipePresets) throws(CommandFailure) {
        do throws(RecipeError) {
            try self.init(text, presets: presets)
        } catch {
            throw CommandFailure(.usage, error.message(of: text))
        }
    }
}

extension ImageFormat {
    /// Finds a format by its name or file extension, case-insensitively. Returns nil if no format matches.
    init?(name: String, among formats: [ImageFormat]) {
        let name = name.lowercased()
        guard let format = formats.first(where: { $0.rawValue == name || $0.fileExtensions.contains(name) }) else {
            return nil
        }
        self = format
    }
}

extension PipelineError {
    /// Returns the error with a suggestion of what the user probably meant by `source`, if there is a suggestion.
    func hinting(at source: String) -> PipelineError {
        guard code == .notFound || code == .fetchFailed, let hint = SourceHint.text(for: source) else { return self }
        var error = self
        error.message += "; " + hint
        return error
    }
}
