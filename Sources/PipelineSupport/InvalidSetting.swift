/// An error for a setting with an invalid value.
public struct InvalidSetting: Error, Sendable, Hashable, CustomStringConvertible {
    /// The value of the setting, and what is expected instead.
    public let message: String
    public var description: String { message }

    package init(_ message: String) { self.message = message }
}
