import Glibc
import Pipeline
import Variants

/// The settings of one run: a flag overrides the environment, which overrides the file, which overrides the default.
struct Settings: Sendable {
    struct Entry: Sendable {
        var value: SettingValue
        var origin: SettingOrigin
    }

    private(set) var entries: [String: Entry] = [:]
    /// The environment; `HOME` and `XDG_CACHE_HOME` have a say in paths.
    let environment: [String: String]

    /// Reads the settings from every source. The file is opened only if one is named, so that a run without one never
    /// starts the YAML parser.
    ///
    /// - Parameters:
    ///   - assignments: the arguments of `--set`, `key=VALUE`, in order; a later one overrides an earlier one.
    ///   - flags: settings with their own flag (`--cache DIR`): flag, setting, value. They override `--set`.
    ///   - environment: all variables; those that begin with `PIPECTL_` must name a setting.
    ///   - file: the path of a YAML file.
    init(
        assignments: [String] = [], flags: [(flag: String, key: String, value: String)] = [],
        environment: [String: String] = [:], file: String? = nil
    ) throws(SettingError) {
        self.environment = environment
        if let file {
            for found in try SettingsFile.read(file) { try set(found.key, found.value, found.origin) }
        }
        try readEnvironment(environment)
        for assignment in assignments {
            let origin = SettingOrigin.flag("--set " + (assignment.split(separator: "=").first.map(String.init) ?? ""))
            guard let equals = assignment.firstIndex(of: "="), equals != assignment.startIndex else {
                throw SettingError(.malformedFlag, origin, "`--set` takes key=VALUE, for example --set fetch.slots=8")
            }
            let key = String(assignment[..<equals])
            try read(key, String(assignment[assignment.index(after: equals)...]), origin)
        }
        for flag in flags { try read(flag.key, flag.value, .flag(flag.flag)) }
    }

    private mutating func readEnvironment(_ environment: [String: String]) throws(SettingError) {
        let ours = environment.keys.filter { $0.hasPrefix("PIPECTL_") }.sorted()
        guard !ours.isEmpty else { return }
        let names = Dictionary(uniqueKeysWithValues: SettingCatalogue.all.map { ($0.environmentName, $0.key) })
        for name in ours {
            let origin = SettingOrigin.environment(name)
            guard let key = names[name] else {
                let hint = NearestName.hint(name, in: names.keys.sorted())
                throw SettingError(.unknownKey, origin, "this variable does not name a setting" + hint)
            }
            try read(key, environment[name] ?? "", origin)
        }
    }

    /// Sets a value written as text.
    private mutating func read(_ key: String, _ raw: String, _ origin: SettingOrigin) throws(SettingError) {
        let setting = try SettingCatalogue.setting(key, origin)
        guard let value = setting.kind.read(raw) else { throw Self.bad(setting, raw, origin) }
        entries[key] = Entry(value: value, origin: origin)
        try check(setting)
    }

    /// Sets a value that is already parsed.
    private mutating func set(_ key: String, _ value: SettingValue, _ origin: SettingOrigin) throws(SettingError) {
        let setting = try SettingCatalogue.setting(key, origin)
        guard let accepted = setting.kind.accept(value) else { throw Self.bad(setting, value.json, origin) }
        entries[key] = Entry(value: accepted, origin: origin)
        try check(setting)
    }

    /// Checks that the members of lists are text, unless the setting's kind says otherwise, and those of maps of texts.
    private func check(_ setting: Setting) throws(SettingError) {
        guard let entry = entries[setting.key] else { return }
        switch entry.value {
        case .list(let values) where !setting.kind.holdsNumbers:
            for value in values {
                guard case .string = value else {
                    throw SettingError(
                        .badValue, entry.origin, "`\(setting.key)` contains \(value.kindName); expected text")
                }
            }
        case .map(let members) where ["presets", "baseURLs"].contains(setting.key):
            for member in members {
                guard case .string = member.value else {
                    throw SettingError(
                        .badValue, entry.origin,
                        "`\(setting.key)`: `\(member.name)` is \(member.value.kindName); expected text")
                }
            }
        default: break
        }
    }

    private static func bad(_ setting: Setting, _ shown: String, _ origin: SettingOrigin) -> SettingError {
        let what = setting.isSecret ? "the value" : "`\(shown.prefix(80))`"
        return SettingError(
            .badValue, origin, "\(what) is not valid for `\(setting.key)`; expected \(setting.kind.expectation)")
    }

    /// The value in force.
    func value(_ key: String) -> SettingValue {
        if let entry = entries[key] { return entry.value }
        guard let setting = SettingCatalogue.byKey[key] else {
            preconditionFailure("`\(key)` is not in the catalogue")
        }
        return setting.fallback
    }

    func isSet(_ key: String) -> Bool { entries[key] != nil }

    func origin(_ key: String) -> SettingOrigin { entries[key]?.origin ?? .builtIn }

    /// These settings, but some of them as `other` has them.
    func taking(_ keys: Set<String>, from other: Settings) -> Settings {
        var result = self
        for key in keys { result.entries[key] = other.entries[key] }
        return result
    }

    /// The names of settings whose values differ, sorted.
    func changes(in other: Settings) -> [String] {
        SettingCatalogue.all.map(\.key).filter { value($0) != other.value($0) }.sorted()
    }

    /// The configuration that the settings lead to.
    ///
    /// - Parameters:
    ///   - serves: whether it is for `serve`, which has settings of its own and no other defaults.
    ///   - prefixes: only settings whose names begin with one of these, for commands that need no others.
    func configuration(
        serves: Bool = false, only prefixes: [String] = [""]
    ) throws(SettingError) -> RunConfiguration {
        var configuration = RunConfiguration()
        configuration.pipeline.cacheFolder = cacheFolder
        let settings = serves ? SettingCatalogue.all : SettingCatalogue.pipeline
        if !serves {
            for setting in settings where !isSet(setting.key) { setting.departure?.fill?(&configuration) }
        }
        // `memory.originals` fills the records' budget, too, unless `memory.records`, after it, is set.
        for setting in settings where setting.key != "cache" && prefixes.contains(where: setting.key.hasPrefix) {
            guard let entry = entries[setting.key] else { continue }
            try setting.fill(GivenSetting(key: setting.key, value: entry.value, settings: self), &configuration)
        }
        // Tests of defective decoders inject faults with this variable (docs/workers.md); workers inherit no other.
        let faults = WorkerConfiguration.faultsVariable
        if environment[faults] != nil { configuration.workers.environment = [faults + "=1"] }
        return configuration
    }

    /// The cache folder: `cache`, else `$XDG_CACHE_HOME/image-pipeline` if that is absolute (as the XDG base directory
    /// specification requires), else `~/.cache/image-pipeline`, else a folder of this user under `/tmp`.
    var cacheFolder: String {
        let given = GivenSetting(key: "cache", value: value("cache"), settings: self)
        if case .string(let path) = given.value, !path.isEmpty { return given.resolved(path) }
        if let base = environment["XDG_CACHE_HOME"], base.hasPrefix("/") { return base + "/image-pipeline" }
        if let home = environment["HOME"], home.hasPrefix("/") { return home + "/.cache/image-pipeline" }
        return "/tmp/image-pipeline-\(getuid())"
    }
}
