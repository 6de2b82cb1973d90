/// An HTTP proxy that fetches go through (setting `fetch.proxy`): `http://[USER:PASSWORD@]HOST[:PORT]`.
///
/// The proxy resolves host names and connects, so only addresses that a URL names itself can be checked.
public struct FetchProxy: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    private let url: SourceURL

    /// Parses the URL of a proxy. User and password are percent-encoded.
    ///
    /// Returns nil for other schemes than http, and for a URL with a path, a query or a fragment.
    public init?(_ text: String) {
        guard let url = try? SourceURL(text), url.scheme == "http", url.target == "/", !text.contains("#") else {
            return nil
        }
        self.url = url
    }

    /// `http://HOST:PORT`, without user and password.
    public var description: String { "http://\(url.host):\(url.port)" }

    /// Omits user and password.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// User and password for the `Basic` scheme (RFC 7617); nil if the URL has no userinfo.
    var credentials: (user: String, password: String)? {
        guard let parts = url.userinfo?.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false) else {
            return nil
        }
        let texts = parts.map { String(decoding: SourceURL.percentDecoded(String($0)), as: UTF8.self) }
        return (texts[0], texts.count > 1 ? texts[1] : "")
    }
}
