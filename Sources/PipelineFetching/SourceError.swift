/// Why a text is not the URL of a source.
public struct SourceError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of fault.
    public enum Code: String, Sendable, Hashable {
        /// Not an http or https URL.
        case unsupportedScheme
        /// Not a URL by RFC 3986.
        case malformed
    }

    /// The kind of fault.
    public let code: Code
    /// The source without its credentials, what is wrong with it, and what would help.
    public let message: String

    /// An error about `text`, whose credentials are left out of the message.
    public init(_ code: Code, _ text: String, _ problem: String) {
        self.code = code
        message = "source `\(SourceURL.redacting(text))`: \(problem)"
    }

    public var description: String { message }
}
