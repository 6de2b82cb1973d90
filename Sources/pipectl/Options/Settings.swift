import PipelineSupport
import Glibc
import Pipeline
import Variants

/// The settings of one run. Flags override the environment, which overrides the file, which overrides the defaults.
struct Settings: Sendable {
    struct Entry: Sendable {
        var value: SettingValue
        var origin: SettingOrigin
        /// The line of each element or member, if the value is a list or a map in a file.
        var lines: [Int] = []
    }

    private(set) var entries: [String: Entry] = [:]
    /// The errors that occurred while reading. A setting with an error is not in `entries`.
    private(set) var errors = SettingErrors()
    /// The environment. `HOME` and `XDG_CACHE_HOME` affect paths.
    let environment: [String: String]

    private init(_ environment: [String: String]) { self.environment = environment }

    /// Reads the settings from every source and collects their errors. The YAML parser is started only if a file is
    /// given.
    ///
    /// - Parameters:
    ///   - assignments: The arguments of `--set`, `key=VALUE`, in order. Later arguments override earlier ones.
    ///   - flags: Settings with a dedicated flag (`--cache DIR`): flag, setting, value. They override `--set`.
    ///   - environment: All environment variables. Variables with the prefix `PIPECTL_` must name a setting.
    ///   - file: The path of a YAML file.
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
                    SettingError(.malformedFlag, origin, "expected key=VALUE, for example --set fetch.slots=8")
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

    /// Adds a member to a map of strings, replacing a member with the same name.
    mutating func add(_ name: String, _ text: String, to key: String, _ origin: SettingOrigin) {
        guard case .object(var members) = value(key) else { return }
        members.removeAll { $0.name == name }
        entries[key] = Entry(
            value: .object(members + [SettingMember(name: name, value: .string(text))]), origin: origin)
    }

    private mutating func readEnvironment() {
        let ours = environment.keys.filter { $0.hasPrefix("PIPECTL_") }.sorted()
        guard !ours.isEmpty else { return }
        let keys = SettingCatalog.all.map(\.key) + SettingCatalog.removed.keys
        let names = Dictionary(uniqueKeysWithValues: keys.map { (Setting.environmentName(of: $0), $0) })
        for name in ours {
            let origin = SettingOrigin.environment(name)
            guard let key = names[name] else {
                let hint = NearestName.hint(name, in: names.keys.sorted())
                errors.add([SettingError(.unknownKey, origin, "there is no setting for this variable" + hint)])
                continue
            }
            read(key, environment[name] ?? "", origin)
        }
    }

    /// Sets a value from a string.
    private mutating func read(_ key: String, _ raw: String, _ origin: SettingOrigin) {
        do throws(SettingErrors) {
            let setting = try SettingCatalog.setting(key, origin)
            guard let value = setting.kind.read(raw) else { throw Self.bad(setting, raw, origin) }
            entries[key] = try Self.checked(setting, Entry(value: value, origin: origin))
        } catch {
            errors.add(error)
        }
    }

    /// Sets a parsed value.
    private mutating func set(_ key: String, _ found: Entry) {
        do throws(SettingErrors) {
            let setting = try SettingCatalog.setting(key, found.origin)
            guard let accepted = setting.kind.accept(found.value) else {
                let shown = if case .string(let text) = found.value { text } else { found.value.json }
                throw Self.bad(setting, shown, found.origin)
            }
            entries[key] = try Self.checked(setting, Entry(value: accepted, origin: found.origin, lines: found.lines))
        } catch {
            errors.add(error)
        }
    }

    /// Checks that the elements of lists are strings, unless the setting's kind allows others, and that the members of
    /// string maps are strings.
    private static func checked(_ setting: Setting, _ entry: Entry) throws(SettingErrors) -> Entry {
        let given = GivenSetting(key: setting.key, entry: entry, environment: [:])
        var errors = SettingErrors()
        func check(_ value: SettingValue, _ what: String, _ index: Int) {
            if case .string = value { return }
            errors.add(given.bad("\(what) is \(value.kindName); expected text", member: index))
        }
        switch (entry.value, setting.kind) {
        case (.list(let values), let kind) where !kind.holdsNumbers:
            for (index, value) in values.enumerated() { check(value, "the element", index) }
        case (.object(let members), .names(.text)) where !setting.isSecret:
            for (index, member) in members.enumerated() { check(member.value, "`\(member.name)`", index) }
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

    /// Returns the current value of a setting.
    func value(_ key: String) -> SettingValue {
        if let entry = entries[key] { return entry.value }
        guard let setting = SettingCatalog.byKey[key] else {
            preconditionFailure("`\(key)` is not in the catalogue")
        }
        return setting.fallback
    }

    func isSet(_ key: String) -> Bool { entries[key] != nil }

    func origin(_ key: String) -> SettingOrigin { entries[key]?.origin ?? .builtIn }

    /// Returns these settings with the settings in `keys` and all errors taken from `other`.
    func taking(_ keys: Set<String>, from other: Settings) -> Settings {
        var result = self
        result.errors = other.errors
        for key in keys { result.entries[key] = other.entries[key] }
        return result
    }

    /// Returns the names of the settings that have different values, sorted.
    func changes(in other: Settings) -> [String] {
        SettingCatalog.all.map(\.key).filter { value($0) != other.value($0) }.sorted()
    }

    /// Returns the current value with the information that its errors contain.
    func given(_ key: String) -> GivenSetting {
        GivenSetting(
            key: key, entry: entries[key] ?? Entry(value: value(key), origin: .builtIn), environment: environment,
            cacheFolder: cacheFolder)
    }

    /// Returns the configuration for these settings.
    ///
    /// - Parameters:
    ///   - serves: Whether the configuration is for `serve`, which has additional settings and different defaults.
    ///   - prefixes: The prefixes of the settings to read, for commands that need no other settings.
    /// - Throws: All errors in the settings, including the errors that occurred while reading.
    func configuration(
        serves: Bool = false, only prefixes: [String] = [""]
    ) throws(SettingErrors) -> RunConfiguration {
        var errors = errors
        let configuration = configuration(serves: serves, only: prefixes, &errors)
        try errors.check()
        return configuration
    }

    /// Returns the configuration even if there are errors. A setting with an error keeps its default.
    ///
    /// - Parameter errors: The errors that occurred while reading. Further errors are added.
    func configuration(
        serves: Bool, only prefixes: [String] = [""], _ errors: inout SettingErrors
    ) -> RunConfiguration {
        var configuration = RunConfiguration()
        configuration.pipeline.cacheFolder = cacheFolder
        let settings = serves ? SettingCatalog.all : SettingCatalog.pipeline
        if !serves {
            for setting in settings where !isSet(setting.key) { setting.differingDefault?.fill?(&configuration) }
        }
        // `memory.originals` also sets the budget for records, unless `memory.records`, which follows, is set.
        for setting in settings where setting.key != "cache" && prefixes.contains(where: setting.key.hasPrefix) {
            guard isSet(setting.key) else { continue }
            let given = given(setting.key)
            errors.collect { () throws(SettingErrors) in try setting.fill(given, &configuration) }
        }
        configuration.check(self, prefixes, &errors)
        // Tests of defective decoders inject faults with this variable (docs/workers.md). Workers inherit no other
        // variables.
        let faults = WorkerConfiguration.faultsVariable
        if environment[faults] != nil { configuration.workers.environment = [faults + "=1"] }
        return configuration
    }

    /// The cache folder. It is the first of these that is available: `cache`, `$XDG_CACHE_HOME/image-pipeline` if that
    /// is an absolute path (as the XDG Base Directory Specification requires), `~/.cache/image-pipeline`, and a folder
    /// of this user in `/tmp`.
    var cacheFolder: String {
        if let entry = entries["cache"], case .string(let path) = entry.value, !path.isEmpty {
            return GivenSetting(key: "cache", entry: entry, environment: environment).resolved(path)
        }
        if let base = environment["XDG_CACHE_HOME"], base.hasPrefix("/") { return base + "/image-pipeline" }
        if let home = environment["HOME"], home.hasPrefix("/") { return home.belowHome("/.cache/image-pipeline") }
        return "/tmp/image-pipeline-\(getuid())"
    }
}
