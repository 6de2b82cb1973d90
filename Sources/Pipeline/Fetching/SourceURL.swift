// Normal form (RFC 3986 §6.2.2 and §6.2.3): scheme and host in lower case, default port and dot segments gone, an
// empty path is "/", percent-encodings in the path upper-case and only where needed, no fragment. The query is kept as
// it is: to many origins it is opaque. Octets that no URL may hold (spaces, quotes, anything beyond ASCII) are
// percent-encoded in path and query, as browsers do, and refused in the host.

/// The URL of a source: http or https, in normal form.
public struct SourceURL: Sendable, Hashable, CustomStringConvertible {
    /// `http` or `https`.
    public let scheme: String
    /// Lower-case name or address; an IPv6 address without its brackets, an IPv4 address in dotted decimal however it
    /// was spelled.
    public let host: String
    /// The port, the scheme's default where the text has none.
    public let port: Int
    /// Begins with `/`, normalised.
    public let path: String
    /// What follows `?`, as it was given; nil without one.
    public let query: String?
    /// Credentials in the text, still percent-encoded, never part of `normalised`.
    let userinfo: String?

    /// The longest URL taken, in bytes (RFC 9110 §4.1 asks for at least 8,000).
    static let longest = 8192

    /// Scheme, host and a port that is not the default: requests to one origin share credentials and connections.
    public let origin: String

    /// The whole URL in normal form without credentials and fragment: the identity of the source.
    public let normalised: String

    /// The URL for messages and logs, without credentials.
    public var redacted: String { normalised }

    public var description: String { redacted }

    /// Path and query.
    var target: String { query.map { "\(path)?\($0)" } ?? path }

    /// `Authorization` for credentials written in the URL (RFC 7617); nil without any.
    public var authorization: HeaderField? {
        guard let userinfo else { return nil }
        let decoded = Self.percentDecoded(userinfo.contains(":") ? userinfo : userinfo + ":")
        return HeaderField("Authorization", "Basic " + Base64.text(decoded))
    }

    /// Parses an absolute http or https URL.
    ///
    /// - Throws: `SourceError` for other schemes, malformed hosts and ports, control characters and over-long texts.
    public init(_ text: String) throws(SourceError) {
        guard text.utf8.count <= Self.longest else {
            throw SourceError(
                .malformed, String(text.prefix(64)) + "…",
                "is \(text.utf8.count) bytes, at most \(Self.longest) are taken")
        }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw SourceError(.malformed, text, "holds a control character")
        }
        guard let colon = text.firstIndex(of: ":"), text[text.index(after: colon)...].hasPrefix("//") else {
            let known = ["http:", "https:"].contains { text.lowercased().hasPrefix($0) }
            throw SourceError(
                known ? .malformed : .unsupportedScheme, text,
                "is no absolute URL; write http://HOST/… or https://HOST/…")
        }
        let scheme = text[..<colon].lowercased()
        guard scheme == "http" || scheme == "https" else {
            throw SourceError(.unsupportedScheme, text, "only http and https are fetched, not `\(scheme)`")
        }
        var rest = text[text.index(colon, offsetBy: 3)...]
        if let hash = rest.firstIndex(of: "#") { rest = rest[..<hash] }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        var authority = rest[..<end]
        rest = rest[end...]
        // Some programs read a backslash as a slash, and so would see another host than we do.
        guard !authority.contains("\\") else {
            throw SourceError(.malformed, text, "holds a backslash before its path")
        }
        if let at = authority.lastIndex(of: "@") {
            userinfo = String(authority[..<at])
            authority = authority[authority.index(after: at)...]
        } else {
            userinfo = nil
        }
        let (host, port) = try Self.hostAndPort(authority, scheme: scheme, text: text)
        self.scheme = scheme
        self.host = host
        self.port = port
        if let mark = rest.firstIndex(of: "?") {
            query = Self.encoded(String(rest[rest.index(after: mark)...]), normalising: false)
            rest = rest[..<mark]
        } else {
            query = nil
        }
        path = Self.withoutDotSegments(Self.encoded(String(rest), normalising: true))
        let name = host.contains(":") ? "[\(host)]" : host
        origin = port == Self.defaultPort(of: scheme) ? "\(scheme)://\(name)" : "\(scheme)://\(name):\(port)"
        if let query { normalised = "\(origin)\(path)?\(query)" } else { normalised = origin + path }
    }

    /// The URL a reference found here leads to, as in `Location` (RFC 3986 §5.2); credentials in it are not taken.
    public func resolving(_ reference: String) throws(SourceError) -> SourceURL {
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
            absolute = normalised
        } else {
            let folder = path[...(path.lastIndex(of: "/") ?? path.startIndex)]
            absolute = origin + folder + text
        }
        return try SourceURL(Self.redacting(absolute))
    }

    /// A text for messages: what stands between `//` and the last `@` of the authority is left out.
    static func redacting(_ text: String) -> String {
        guard let slashes = text[...].utf8.end(of: "//") else { return text }
        let rest = text[slashes...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        guard let at = rest[..<end].lastIndex(of: "@") else { return text }
        return String(text[..<slashes]) + rest[rest.index(after: at)...]
    }

    static func defaultPort(of scheme: String) -> Int { scheme == "https" ? 443 : 80 }

    private static func isScheme(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, isLetter(first) else { return false }
        return text.utf8.allSatisfy { isLetter($0) || isDigit($0) || [0x2B, 0x2D, 0x2E].contains($0) }
    }
}
