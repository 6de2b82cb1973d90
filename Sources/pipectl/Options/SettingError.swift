/// Where the value of a setting came from; every error about the setting names it.
enum SettingOrigin: Sendable, Hashable, CustomStringConvertible {
    case flag(String)
    case environment(String)
    case file(String, line: Int?)
    case builtIn

    var description: String {
        switch self {
        case .flag(let flag): flag
        case .environment(let name): "environment variable \(name)"
        case .file(let path, let line): line.map { "\(path), line \($0)" } ?? path
        case .builtIn: "default"
        }
    }
}

/// An unusable setting; the program exits with code 2.
struct SettingError: Error, Sendable, Hashable, CustomStringConvertible {
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
    var description: String { "\(origin): \(message)" }

    init(_ code: Code, _ origin: SettingOrigin, _ message: String) {
        self.code = code
        self.origin = origin
        self.message = message
    }
}
