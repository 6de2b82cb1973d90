/// The origin of a setting's value, which is part of every error about the setting.
enum SettingOrigin: Sendable, Hashable, CustomStringConvertible {
    /// `position` is the index among the given flags, starting at 0.
    case flag(String, position: Int)
    case environment(String)
    case file(String, line: Int?)
    case builtIn

    var description: String {
        switch self {
        case .flag(let flag, _): flag
        case .environment(let name): "environment variable \(name)"
        case .file(let path, let line): line.map { "\(path), line \($0)" } ?? path
        case .builtIn: "default"
        }
    }
}

/// An error in the settings. Errors are thrown together as `SettingErrors`.
struct SettingError: Sendable, Hashable, CustomStringConvertible {
    enum Code: String, Sendable {
        case unknownKey
        /// The value is of the wrong kind or out of range.
        case badValue
        /// A `--set` without `=`.
        case malformedFlag
        /// The configuration file cannot be read or is not a YAML map.
        case badFile
    }
    var code: Code
    var origin: SettingOrigin
    var message: String
    /// The name of the setting, or nil if the setting is unknown.
    var key: String?
    /// Whether the error results from several settings, or from a file that a setting names.
    var isCombined = false

    /// The message, preceded by the place where the setting was made, unless the setting has its default value.
    var description: String { origin == .builtIn ? message : "\(origin): \(message)" }

    init(_ code: Code, _ origin: SettingOrigin, _ message: String, key: String? = nil) {
        self.code = code
        self.origin = origin
        self.message = message
        self.key = key
    }

    /// The sort key of the error.
    var place: (group: Int, number: Int, name: String) {
        if isCombined { return (3, 0, "") }
        switch origin {
        case .file(_, let line): return (0, line ?? 0, "")
        case .environment(let name): return (1, 0, name)
        case .flag(_, let position): return (2, position, "")
        case .builtIn: return (3, 0, "")
        }
    }
}
