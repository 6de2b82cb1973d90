package import HTTPCaching
import PipelineSupport

// The normal form (RFC 3986 §6.2.2 and §6.2.3): scheme and host are in lower case, and an empty path is "/". The
// default port, dot segments and the fragment are removed. Percent-encodings in the path are in upper case, and only
// used where needed. The query is unchanged, because many origins treat it as opaque. Octets that a URL must not
// contain (spaces, quotes, anything beyond ASCII) are percent-encoded in the path and query, as browsers do, and
// refused in the host.

/// The URL of a source in normal form: an http or https URL, or a name for a transport of another scheme. A `Transport`
/// reads it from `FetchRequest.url`.
public struct SourceURL: Sendable, Hashable, CustomStringConvertible {
    /// The parts behind a single reference, because URLs are copied often and contain many strings.
    private let parts: Parts

    private final class Parts: Sendable {
        let scheme: String
        let host: String
        let port: Int
        let path: String
        let query: String?
        let userinfo: String?
        let origin: String
        let normalized: String

        init(scheme: String, host: String, port: Int, path: String, query: String?, userinfo: String?) {
            self.scheme = scheme
            self.host = host
            self.port = port
            self.path = path
            self.query = query
            self.userinfo = userinfo
            var origin = scheme + "://"
            origin += host.utf8.contains(UInt8(ascii: ":")) ? "[" + host + "]" : host
            if port != 0, port != SourceURL.defaultPort(of: scheme) { origin += ":" + String(port) }
            self.origin = origin
            normalized = if let query { origin + path + "?" + query } else { origin + path }
        }

        init(scheme: String, name: String) {
            self.scheme = scheme
            (host, port, path, query, userinfo) = ("", 0, name, nil, nil)
            origin = scheme + ":"
            normalized = origin + name
        }
    }

    /// The scheme in lower case.
    public var scheme: String { parts.scheme }
    /// The host name or address in lower case, or an empty string if the scheme has no host. An IPv6 address has no
    /// brackets, and an IPv4 address is always in dotted decimal.
    public var host: String { parts.host }
    /// The port, or the scheme's default port if the URL has none.
    package var port: Int { parts.port }
    /// The normalized path, which begins with `/`, if there is a host. Otherwise, the unchanged text after the scheme's
    /// colon.
    public var path: String { parts.path }
    /// The unchanged text after `?`, or nil if the URL does not contain `?`.
    public var query: String? { parts.query }
    /// The percent-encoded credentials in the URL. They are never part of `normalized`.
    package var userinfo: String? { parts.userinfo }

    /// The length of the longest accepted URL in bytes (RFC 9110 §4.1 recommends at least 8,000).
    static let longest = 8192

    /// The scheme, host and any non-default port. Requests to one origin share credentials and connections.
    package var origin: String { parts.origin }

    /// The URL in normalized form, without credentials or a fragment. This is the identity of the source.
    public var normalized: String { parts.normalized }

    public static func == (a: SourceURL, b: SourceURL) -> Bool {
        a.parts === b.parts || (a.normalized == b.normalized && a.userinfo == b.userinfo)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(normalized) }

    /// The URL for messages and logs, without credentials or signatures.
    package var redacted: String { Self.hidingSecrets(normalized) }

    /// The URL for messages, without credentials or signatures.
    public var description: String { redacted }

    /// The path and query.
    var target: String { query.map { "\(path)?\($0)" } ?? path }

    /// The `Authorization` field for credentials in the URL (RFC 7617), or nil if the URL has no credentials.
    package var authorization: HeaderField? {
        guard let userinfo else { return nil }
        let decoded = Self.percentDecoded(userinfo.contains(":") ? userinfo : userinfo + ":")
        return HeaderField("Authorization", "Basic " + Base64.text(decoded))
    }

    /// Parses an absolute http or https URL.
    ///
    /// - Throws: `SourceError` if the scheme is different, the host or port is malformed, or the URL is too long or
    ///   contains control characters.
    package init(_ text: String) throws(SourceError) {
        guard text.utf8.count <= Self.longest else {
            throw SourceError(
                .malformed, String(text.prefix(64)) + "…",
                "the URL has \(text.utf8.count) bytes; the maximum is \(Self.longest)")
        }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw SourceError(.malformed, text, "contains a control character")
        }
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), text.utf8[colon...].starts(with: "://".utf8)
        else {
            let known = ["http:", "https:"].contains { text.lowercased().hasPrefix($0) }
            throw SourceError(
                known ? .malformed : .unsupportedScheme, text,
                "is not an absolute URL; write http://HOST/… or https://HOST/…")
        }
        let scheme = FieldLines.lowercased(String(text[..<colon]))
        guard scheme == "http" || scheme == "https" else {
            throw SourceError(.unsupportedScheme, text, "the scheme `\(scheme)` is not supported; use http or https")
        }
        // Search byte by byte, because the delimiters are ASCII and searching for characters is slower.
        var rest = text[text.utf8.index(colon, offsetBy: 3)...]
        if let hash = rest.utf8.firstIndex(of: UInt8(ascii: "#")) { rest = rest[..<hash] }
        let end = rest.utf8.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        var authority = rest[..<end]
        rest = rest[end...]
        // Some programs treat a backslash as a slash, and would see a different host.
        guard !authority.utf8.contains(UInt8(ascii: "\\")) else {
            throw SourceError(.malformed, text, "contains a backslash before its path")
        }
        var userinfo: String?
        if let at = authority.utf8.lastIndex(of: UInt8(ascii: "@")) {
            userinfo = String(authority[..<at])
            authority = authority[authority.utf8.index(after: at)...]
        }
        let (host, port) = try Self.hostAndPort(authority, scheme: scheme, text: text)
        var query: String?
        if let mark = rest.utf8.firstIndex(of: UInt8(ascii: "?")) {
            query = Self.encoded(String(rest[rest.utf8.index(after: mark)...]), normalizing: false)
            rest = rest[..<mark]
        }
        let path = Self.withoutDotSegments(Self.encoded(String(rest), normalizing: true))
        parts = Parts(scheme: scheme, host: host, port: port, path: path, query: query, userinfo: userinfo)
    }

    /// Creates a source without a host, such as `file:/path` or `bytes:DIGEST`.
    ///
    /// - Parameters:
    ///   - scheme: the scheme in lower case.
    ///   - name: the text after the colon. It becomes `path`, unchanged.
    public init(scheme: String, name: String) { parts = Parts(scheme: scheme, name: name) }

    init(bucket: String, path: String, query: String?) {
        parts = Parts(scheme: "s3", host: bucket, port: 0, path: path, query: query, userinfo: nil)
    }

    /// Parses `SCHEME:NAME` or `SCHEME://NAME`, which are the same source. Returns nil if the scheme is not among
    /// `schemes`, or if the name is empty or contains control characters.
    package init?(_ text: String, ofAny schemes: Set<String>) {
        guard !schemes.isEmpty, let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let scheme = FieldLines.lowercased(String(text[..<colon]))
        var name = text[text.utf8.index(after: colon)...]
        if name.utf8.starts(with: "//".utf8) { name = name.dropFirst(2) }
        guard schemes.contains(scheme), !name.isEmpty, name.utf8.count <= Self.longest,
            name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { return nil }
        self.init(scheme: scheme, name: String(name))
    }

    /// Resolves a reference found at this URL, such as a `Location` (RFC 3986 §5.2). Credentials in the reference are
    /// dropped.
    package func resolving(_ reference: String) throws(SourceError) -> SourceURL {
        let text = reference.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
        let absolute: String
        if let colon = text.firstIndex(of: ":"), Self.isScheme(text[..<colon]) {
            absolute = String(text)
        } else if text.hasPrefix("//") {
            absolute = "\(scheme):\(text)"
        } else if text.hasPrefix("/") {
            absolute = origin + text
        } else if text.hasPrefix("?") {
            absolute = origin + path + text
        } else if text.isEmpty {
            absolute = normalized
        } else {
            let folder = path[...(path.lastIndex(of: "/") ?? path.startIndex)]
            absolute = origin + folder + text
        }
        return try SourceURL(Self.withoutUserinfo(absolute))
    }

    /// Returns the text without the userinfo, which ends at the last `@` of the authority.
    private static func withoutUserinfo(_ text: String) -> String {
        guard let slashes = text[...].utf8.end(of: "//") else { return text }
        let rest = text[slashes...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        guard let at = rest[..<end].lastIndex(of: "@") else { return text }
        return String(text[..<slashes]) + rest[rest.index(after: at)...]
    }

    static func defaultPort(of scheme: String) -> Int { scheme == "https" ? 443 : 80 }

    private static func isScheme(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, first.isLetter else { return false }
        return text.utf8.allSatisfy { $0.isLetterOrDigit || [0x2B, 0x2D, 0x2E].contains($0) }
    }
}
