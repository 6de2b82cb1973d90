import PipelineSupport

/// A setting: its name, the property in the configuration that it fills, the values that it accepts, and the reason for
/// its default. The default is taken from the configuration, so the library and the command share it.
struct Setting: Sendable {
    /// A default that differs from the library's default in `pipectl` or in some of its commands.
    struct DifferingDefault: Sendable {
        /// The different default, where it applies, and the reason.
        var text: String
        /// Applies the default in all commands except `serve`, unless the setting is set.
        var fill: (@Sendable (inout RunConfiguration) -> Void)?
    }

    let key: String
    let kind: SettingKind
    let reason: String
    /// Whether the value must never appear in messages.
    let isSecret: Bool
    let differingDefault: DifferingDefault?
    let value: @Sendable (RunConfiguration) -> SettingValue
    let fill: @Sendable (GivenSetting, inout RunConfiguration) throws(SettingErrors) -> Void

    /// Declares a setting that fills the property at `path`.
    ///
    /// - Parameter unlessServing: The default in all commands except `serve`, and the reason for the difference.
    init<Value: Sendable>(
        _ key: String, _ path: any WritableKeyPath<RunConfiguration, Value> & Sendable, _ form: SettingForm<Value>,
        _ reason: String, isSecret: Bool = false, unlessServing: OtherDefault<Value>? = nil,
        differingDefault: String? = nil
    ) {
        self.key = key
        kind = form.kind
        self.reason = reason
        self.isSecret = isSecret
        self.differingDefault =
            unlessServing.map { other in
                let value = other.words ?? form.text(other.value)
                return DifferingDefault(text: "\(value) in all commands except serve: \(other.reason)") {
                    $0[keyPath: path] = other.value
                }
            } ?? differingDefault.map { DifferingDefault(text: $0) }
        value = { form.write($0[keyPath: path]) }
        fill = { (given, configuration) throws(SettingErrors) in configuration[keyPath: path] = try form.read(given) }
    }

    /// The default, as shown in the table of settings.
    var fallback: SettingValue { value(Self.defaults) }
    private static let defaults = RunConfiguration()

    /// The name of the environment variable: `fetch.perHost` → `PIPECTL_FETCH_PER_HOST`, `baseURLs` →
    /// `PIPECTL_BASE_URLS`.
    var environmentName: String { Self.environmentName(of: key) }

    static func environmentName(of key: String) -> String {
        var name = "PIPECTL_"
        var isWordEnd = false
        for character in key {
            if character == "." {
                name += "_"
            } else {
                if character.isUppercase, isWordEnd { name += "_" }
                name += character.uppercased()
            }
            isWordEnd = character.isLowercase
        }
        return name
    }
}

/// A default in all commands except `serve`.
struct OtherDefault<Value: Sendable>: Sendable {
    var value: Value
    /// The description in the table of settings, if the value depends on the machine.
    var words: String?
    var reason: String

    init(_ value: Value, as words: String? = nil, _ reason: String) {
        self.value = value
        self.words = words
        self.reason = reason
    }
}

/// A setting with a value of the setting's kind and the origin of the value.
struct GivenSetting {
    let key: String
    var entry: Settings.Entry
    let environment: [String: String]
    /// A folder on the file system to which percentages refer.
    var cacheFolder = ""
    /// The names of the members that lead to the value, if the value is in a map.
    var path: [String] = []

    var value: SettingValue { entry.value }

    /// Returns an error about the value.
    ///
    /// - Parameter member: The position of the invalid element or member. The error includes its line.
    func bad(_ problem: String, member: Int? = nil) -> SettingErrors {
        let place = "`\(key)`: " + path.map { "\($0): " }.joined()
        return SettingErrors(SettingError(.badValue, origin(of: member), place + problem, key: key))
    }

    func origin(of member: Int?) -> SettingOrigin {
        guard let member, entry.lines.indices.contains(member), case .file(let path, _) = entry.origin else {
            return entry.origin
        }
        return .file(path, line: entry.lines[member])
    }

    /// Returns the position of a member in a map.
    func index(of name: String) -> Int? {
        guard case .object(let members) = value else { return nil }
        return members.lastIndex { $0.name == name }
    }

    /// Returns the result of `read` for each string in a list. Each invalid element is reported as a separate error.
    func each<Element>(_ read: (String) throws(SettingErrors) -> Element) throws(SettingErrors) -> [Element] {
        var elements: [Element] = []
        var errors = SettingErrors()
        guard case .list(let values) = value else { return [] }
        for (index, value) in values.enumerated() {
            errors.collect(at: origin(of: index)) { () throws(SettingErrors) in
                guard case .string(let text) = value else {
                    throw bad("the element is \(value.kindName); expected text", member: index)
                }
                elements.append(try read(text))
            }
        }
        try errors.check()
        return elements
    }

    /// Calls `read` with each member of a map. Each invalid member is reported as a separate error.
    func eachMember(_ read: (String, GivenSetting) throws(SettingErrors) -> Void) throws(SettingErrors) {
        guard case .object(let members) = value else { return }
        var errors = SettingErrors()
        for (index, member) in members.enumerated() {
            var inner = self
            inner.entry = Settings.Entry(value: member.value, origin: origin(of: index))
            inner.path.append(member.name)
            errors.collect(at: inner.entry.origin) { () throws(SettingErrors) in try read(member.name, inner) }
        }
        try errors.check()
    }

    /// Returns the value, or the value of a member, if it is a string.
    func text(_ member: String? = nil) -> String? {
        if case .string(let text)? = member.map({ value[$0] }) ?? value { text } else { nil }
    }

    var texts: [String] {
        guard case .list(let values) = value else { return [] }
        return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    /// Resolves a path. `~/` is the home folder. A relative path in a settings file is relative to the folder of that
    /// file.
    func resolved(_ path: String) -> String {
        if path.hasPrefix("~/"), let home = environment["HOME"], !home.isEmpty {
            return home.belowHome(path.dropFirst())
        }
        guard case .file(let file, _) = entry.origin else { return path }
        return path.relative(toFolderOf: file)
    }
}

extension String {
    /// Returns a path in this home folder, which is often `/` in containers.
    func belowHome(_ path: some StringProtocol) -> String { (hasSuffix("/") ? String(dropLast()) : self) + path }

    /// Resolves a path written in a file against that file's folder.
    func relative(toFolderOf file: String) -> String {
        guard utf8.first != UInt8(ascii: "/"), let folder = file.splitAtLastSlash?.folder else { return self }
        return folder + "/" + self
    }
}
