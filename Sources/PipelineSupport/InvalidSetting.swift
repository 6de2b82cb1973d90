/// Describes a setting with an invalid value. Initializers that parse strings, such as `HostPolicy.init(allow:deny:)`,
/// and `Site.init` throw it.
public struct InvalidSetting: Error, Sendable, Hashable, CustomStringConvertible {
    /// The value of the setting, and what is expected instead.
    public let message: String
    public var description: String { message }

    package init(_ message: String) { self.message = message }
}
