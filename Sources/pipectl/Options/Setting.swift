import PipelineSupport

/// One setting: its name, the place in the configuration that it fills, the values it takes, and the reason for its
/// default. The default is the configuration's own, so that library and command share it.
struct Setting: Sendable {
    /// A default of `pipectl` that is not the library's, or of some of its commands.
    struct Departure: Sendable {
        /// The other default, where it applies, and why.
        var text: String
        /// Applied in all commands but `serve`, unless the setting is set.
        var fill: (@Sendable (inout RunConfiguration) -> Void)?
    }

    let key: String
    let kind: SettingKind
    let reason: String
    /// Whether the value must never appear in messages.
    let isSecret: Bool
    let departure: Departure?
    let value: @Sendable (RunConfiguration) -> SettingValue
    let fill: @Sendable (GivenSetting, inout RunConfiguration) throws(SettingErrors) -> Void

    /// Declares a setting that fills the property at `path`.
    ///
    /// - Parameter unlessServing: the default of all commands but `serve`, and why it differs.
    init<Value: Sendable>(
        _ key: String, _ path: any WritableKeyPath<RunConfiguration, Value> & Sendable, _ form: SettingForm<Value>,
        _ reason: String, isSecret: Bool = false, unlessServing: OtherDefault<Value>? = nil,
        departure: String? = nil
    ) {
        self.key = key
        kind = form.kind
        self.reason = reason
        self.isSecret = isSecret
        self.departure =
            unlessServing.map { other in
                let value = other.words ?? form.text(other.value)
                return Departure(text: "\(value) in all commands but serve: \(other.reason)") {
                    $0[keyPath: path] = other.value
                }
            } ?? departure.map { Departure(text: $0) }
        value = { form.write($0[keyPath: path]) }
        fill = { (given, configuration) throws(SettingErrors) in configuration[keyPath: path] = try form.read(given) }
    }

    /// The default, as the table of settings shows it.
    var fallback: SettingValue { value(Self.defaults) }
    private static let defaults = RunConfiguration()

    /// `fetch.perHost` → `PIPECTL_FETCH_PER_HOST`, `baseURLs` → `PIPECTL_BASE_URLS`.
    var environmentName: String {
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

/// A default of all commands but `serve`.
struct OtherDefault<Value: Sendable>: Sendable {
    var value: Value
    /// The value in the table of settings, if it is not the same on every machine.
    var words: String?
    var reason: String

    init(_ value: Value, as words: String? = nil, _ reason: String) {
        self.value = value
        self.words = words
        self.reason = reason
    }
}

/// A setting that was set: its value, of the setting's kind, and where it is from.
struct GivenSetting {
    let key: String
    let entry: Settings.Entry
    let environment: [String: String]
    /// The folder whose file system shares are of.
    var cacheFolder = ""

    var value: SettingValue { entry.value }

    /// - Parameter member: the position of the element or member that is at fault, whose line is then named.
    func bad(_ problem: String, member: Int? = nil) -> SettingErrors {
        SettingErrors(SettingError(.badValue, origin(of: member), "`\(key)`: \(problem)", key: key))
    }

    func origin(of member: Int?) -> SettingOrigin {
        guard let member, entry.lines.indices.contains(member), case .file(let path, _) = entry.origin else {
            return entry.origin
        }
        return .file(path, line: entry.lines[member])
    }

    /// The position of a member of a map.
    func index(of name: String) -> Int? {
        guard case .object(let members) = value else { return nil }
        return members.lastIndex { $0.name == name }
    }

    /// What `read` makes of each text of a list. Each that it refuses is an error of its own.
    func each<Element>(_ read: (String) throws(SettingErrors) -> Element) throws(SettingErrors) -> [Element] {
        var elements: [Element] = []
        var errors = SettingErrors()
        for (index, text) in texts.enumerated() {
            errors.collect(at: origin(of: index)) { () throws(SettingErrors) in elements.append(try read(text)) }
        }
        try errors.check()
        return elements
    }

    /// Calls `read` for each member of a map. Each that it refuses is an error of its own.
    func eachMember(_ read: (SettingMember) throws(SettingErrors) -> Void) throws(SettingErrors) {
        guard case .object(let members) = value else { return }
        var errors = SettingErrors()
        for (index, member) in members.enumerated() {
            errors.collect(at: origin(of: index)) { () throws(SettingErrors) in try read(member) }
        }
        try errors.check()
    }

    var texts: [String] {
        guard case .list(let values) = value else { return [] }
        return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    /// Resolves a path: `~/` is the home folder; a relative path in a settings file is relative to that file's folder.
    func resolved(_ path: String) -> String {
        if path.hasPrefix("~/"), let home = environment["HOME"], !home.isEmpty {
            return home.belowHome(path.dropFirst())
        }
        guard case .file(let file, _) = entry.origin else { return path }
        return path.relative(toFolderOf: file)
    }
}

extension String {
    /// A path below this home folder, which for users of containers is often `/`.
    func belowHome(_ path: some StringProtocol) -> String { (hasSuffix("/") ? String(dropLast()) : self) + path }

    /// Resolves a path written in a file against that file's folder.
    func relative(toFolderOf file: String) -> String {
        guard utf8.first != UInt8(ascii: "/"), let folder = file.splitAtLastSlash?.folder else { return self }
        return folder + "/" + self
    }
}
