/// The reason why a string is not the URL of a source.
package struct SourceError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: String, Sendable, Hashable {
        /// The URL is not an http or https URL.
        case unsupportedScheme
        /// The string is not a URL (RFC 3986).
        case malformed
    }

    package let code: Code
    /// The source without its credentials, what is wrong with it, and how to fix it.
    package let message: String

    /// Creates an error about `text`. The message omits the credentials in `text`.
    package init(_ code: Code, _ text: String, _ problem: String) {
        self.code = code
        message = "source `\(SourceURL.redacting(text))`: \(problem)"
    }

    package var description: String { message }
}
