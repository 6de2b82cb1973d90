public import PipelineSupport

/// Specifies an HTTP proxy for fetches: `FetchConfiguration.proxy`, or the `fetch.proxy` setting.
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.fetch.proxy = try FetchProxy("http://proxy.example.org:3128")
/// ```
///
/// The proxy resolves host names and connects, so addresses can be checked only if a URL contains them.
public struct FetchProxy: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    private let url: SourceURL

    /// Parses the URL of a proxy. The user and the password are percent-encoded.
    ///
    /// - Throws: `InvalidSetting` if the scheme is not http, or if the URL has a path, query or fragment. The message
    ///   omits the URL, because the URL may contain a password.
    public init(_ text: String) throws(InvalidSetting) {
        guard let url = try? SourceURL(text), url.scheme == "http", url.target == "/", !text.contains("#") else {
            throw InvalidSetting("expected http://[USER:PASSWORD@]HOST[:PORT], user and password percent-encoded")
        }
        self.url = url
    }

    /// The URL `http://HOST:PORT`, without the user and password.
    public var description: String { "http://\(url.host):\(url.port)" }

    /// An empty mirror, so that dumps omit the user and password.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// The user and password for the `Basic` scheme (RFC 7617), or nil if the URL has no userinfo.
    var credentials: (user: String, password: String)? {
        guard let parts = url.userinfo?.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false) else {
            return nil
        }
        let texts = parts.map { String(decoding: SourceURL.percentDecoded(String($0)), as: UTF8.self) }
        return (texts[0], texts.count > 1 ? texts[1] : "")
    }
}
