/// Why a text is not the URL of a source.
package struct SourceError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: String, Sendable, Hashable {
        /// Not an http or https URL.
        case unsupportedScheme
        /// Not a URL by RFC 3986.
        case malformed
    }

    package let code: Code
    /// The source without its credentials, what is wrong with it, and what would help.
    package let message: String

    /// An error about `text`, whose credentials are left out of the message.
    package init(_ code: Code, _ text: String, _ problem: String) {
        self.code = code
        message = "source `\(SourceURL.redacting(text))`: \(problem)"
    }

    package var description: String { message }
}
