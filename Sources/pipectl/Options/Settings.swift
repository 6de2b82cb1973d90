import PipelineSupport
import Glibc
import Pipeline
import Variants

/// The settings of one run: a flag overrides the environment, which overrides the file, which overrides the default.
struct Settings: Sendable {
    struct Entry: Sendable {
        var value: SettingValue
        var origin: SettingOrigin
        /// In a file the line of each element or member, if the value is a list or a map.
        var lines: [Int] = []
    }

    private(set) var entries: [String: Entry] = [:]
    /// What was wrong with what was read; whatever has an error is not in `entries`.
    private(set) var errors = SettingErrors()
    /// The environment; `HOME` and `XDG_CACHE_HOME` have a say in paths.
    let environment: [String: String]

    /// Reads the settings as `collected` does.
    ///
    /// - Throws: all that is wrong with them, as far as it shows without making a configuration of them.
    init(
        assignments: [String] = [], flags: [(flag: String, key: String, value: String)] = [],
        environment: [String: String] = [:], file: String? = nil
    ) throws(SettingErrors) {
        self = .collected(assignments: assignments, flags: flags, environment: environment, file: file)
        try errors.check()
    }

    private init(_ environment: [String: String]) { self.environment = environment }

    /// Reads the settings from every source, whatever is wrong with them. The file is opened only if one is named, so
    /// that a run without one never starts the YAML parser.
    ///
    /// - Parameters:
    ///   - assignments: the arguments of `--set`, `key=VALUE`, in order; a later one overrides an earlier one.
    ///   - flags: settings with their own flag (`--cache DIR`): flag, setting, value. They override `--set`.
    ///   - environment: all variables; those that begin with `PIPECTL_` must name a setting.
    ///   - file: the path of a YAML file.
    static func collected(
        assignments: [String] = [], flags: [(flag: String, key: String, value: String)] = [],
        environment: [String: String] = [:], file: String? = nil
    ) -> Settings {
        var settings = Settings(environment)
        if let file {
            for found in SettingsFile.read(file, &settings.errors) { settings.set(found.key, found.entry) }
        }
        settings.readEnvironment()
        for (position, assignment) in assignments.enumerated() {
            let name = assignment.split(separator: "=").first.map(String.init) ?? ""
            let origin = SettingOrigin.flag("--set " + name, position: position)
            guard let equals = assignment.firstIndex(of: "="), equals != assignment.startIndex else {
                settings.errors.add([
                    SettingError(.malformedFlag, origin, "`--set` takes key=VALUE, for example --set fetch.slots=8")
                ])
                continue
            }
            let key = String(assignment[..<equals])
            settings.read(key, String(assignment[assignment.index(after: equals)...]), origin)
        }
        for (position, flag) in flags.enumerated() {
            settings.read(flag.key, flag.value, .flag(flag.flag, position: assignments.count + position))
        }
        return settings
    }

    /// Adds a member to a map of texts, in place of one of the same name.
    mutating func add(_ name: String, _ text: String, to key: String, _ origin: SettingOrigin) {
        guard case .object(var members) = value(key) else { return }
        members.removeAll { $0.name == name }
        entries[key] = Entry(
            value: .object(members + [SettingMember(name: name, value: .string(text))]), origin: origin)
    }

    private mutating func readEnvironment() {
        let ours = environment.keys.filter { $0.hasPrefix("PIPECTL_") }.sorted()
        guard !ours.isEmpty else { return }
        let names = Dictionary(uniqueKeysWithValues: SettingCatalogue.all.map { ($0.environmentName, $0.key) })
        for name in ours {
            let origin = SettingOrigin.environment(name)
            guard let key = names[name] else {
                let hint = NearestName.hint(name, in: names.keys.sorted())
                errors.add([SettingError(.unknownKey, origin, "this variable does not name a setting" + hint)])
                continue
            }
            read(key, environment[name] ?? "", origin)
        }
    }

    /// Sets a value written as text.
    private mutating func read(_ key: String, _ raw: String, _ origin: SettingOrigin) {
        do throws(SettingErrors) {
            let setting = try SettingCatalogue.setting(key, origin)
            guard let value = setting.kind.read(raw) else { throw Self.bad(setting, raw, origin) }
            entries[key] = try Self.checked(setting, Entry(value: value, origin: origin))
        } catch {
            errors.add(error)
        }
    }

    /// Sets a value that is already parsed.
    private mutating func set(_ key: String, _ found: Entry) {
        do throws(SettingErrors) {
            let setting = try SettingCatalogue.setting(key, found.origin)
            guard let accepted = setting.kind.accept(found.value) else {
                let shown = if case .string(let text) = found.value { text } else { found.value.json }
                throw Self.bad(setting, shown, found.origin)
            }
            entries[key] = try Self.checked(setting, Entry(value: accepted, origin: found.origin, lines: found.lines))
        } catch {
            errors.add(error)
        }
    }

    /// Checks that the members of lists are text, unless the setting's kind says otherwise, and those of maps of texts.
    private static func checked(_ setting: Setting, _ entry: Entry) throws(SettingErrors) -> Entry {
        let given = GivenSetting(key: setting.key, entry: entry, environment: [:])
        var errors = SettingErrors()
        switch entry.value {
        case .list(let values) where !setting.kind.holdsNumbers:
            for (index, value) in values.enumerated() {
                if case .string = value { continue }
                errors.add(given.bad("an element is \(value.kindName); expected text", member: index))
            }
        case .object(let members) where ["presets", "baseURLs"].contains(setting.key):
            for (index, member) in members.enumerated() {
                if case .string = member.value { continue }
                errors.add(given.bad("`\(member.name)` is \(member.value.kindName); expected text", member: index))
            }
        default: break
        }
        try errors.check()
        return entry
    }

    private static func bad(_ setting: Setting, _ shown: String, _ origin: SettingOrigin) -> SettingErrors {
        let what = setting.isSecret ? "the value" : "`\(shown.prefix(80))`"
        return SettingErrors(
            SettingError(
                .badValue, origin, "\(what) is not valid for `\(setting.key)`; expected \(setting.kind.expectation)",
                key: setting.key))
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

    /// These settings, but some of them, and all errors, as `other` has them.
    func taking(_ keys: Set<String>, from other: Settings) -> Settings {
        var result = self
        result.errors = other.errors
        for key in keys { result.entries[key] = other.entries[key] }
        return result
    }

    /// The names of settings whose values differ, sorted.
    func changes(in other: Settings) -> [String] {
        SettingCatalogue.all.map(\.key).filter { value($0) != other.value($0) }.sorted()
    }

    /// The value in force with all that its errors name.
    func given(_ key: String) -> GivenSetting {
        GivenSetting(
            key: key, entry: entries[key] ?? Entry(value: value(key), origin: .builtIn), environment: environment,
            cacheFolder: cacheFolder)
    }

    /// The configuration that the settings lead to.
    ///
    /// - Parameters:
    ///   - serves: whether it is for `serve`, which has settings of its own and no other defaults.
    ///   - prefixes: only settings whose names begin with one of these, for commands that need no others.
    /// - Throws: all that is wrong with the settings, what was found when they were read included.
    func configuration(
        serves: Bool = false, only prefixes: [String] = [""]
    ) throws(SettingErrors) -> RunConfiguration {
        var errors = errors
        let configuration = configuration(serves: serves, only: prefixes, &errors)
        try errors.check()
        return configuration
    }

    /// The same, whatever is wrong: a setting with an error keeps its default.
    ///
    /// - Parameter errors: those of reading; further ones are added.
    func configuration(
        serves: Bool, only prefixes: [String] = [""], _ errors: inout SettingErrors
    ) -> RunConfiguration {
        var configuration = RunConfiguration()
        configuration.pipeline.cacheFolder = cacheFolder
        let settings = serves ? SettingCatalogue.all : SettingCatalogue.pipeline
        if !serves {
            for setting in settings where !isSet(setting.key) { setting.departure?.fill?(&configuration) }
        }
        // `memory.originals` fills the records' budget, too, unless `memory.records`, after it, is set.
        for setting in settings where setting.key != "cache" && prefixes.contains(where: setting.key.hasPrefix) {
            guard isSet(setting.key) else { continue }
            let given = given(setting.key)
            errors.collect { () throws(SettingErrors) in try setting.fill(given, &configuration) }
        }
        configuration.check(self, prefixes, &errors)
        // Tests of defective decoders inject faults with this variable (docs/workers.md); workers inherit no other.
        let faults = WorkerConfiguration.faultsVariable
        if environment[faults] != nil { configuration.workers.environment = [faults + "=1"] }
        return configuration
    }

    /// The cache folder: `cache`, else `$XDG_CACHE_HOME/image-pipeline` if that is absolute (as the XDG base directory
    /// specification requires), else `~/.cache/image-pipeline`, else a folder of this user under `/tmp`.
    var cacheFolder: String {
        if let entry = entries["cache"], case .string(let path) = entry.value, !path.isEmpty {
            return GivenSetting(key: "cache", entry: entry, environment: environment).resolved(path)
        }
        if let base = environment["XDG_CACHE_HOME"], base.hasPrefix("/") { return base + "/image-pipeline" }
        if let home = environment["HOME"], home.hasPrefix("/") { return home.belowHome("/.cache/image-pipeline") }
        return "/tmp/image-pipeline-\(getuid())"
    }
}
