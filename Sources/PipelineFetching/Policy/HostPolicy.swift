public import PipelineSupport

/// Specifies which sources may be contacted, directly or by a redirect: `FetchConfiguration.sources`, or the
/// `sources.allow` and `sources.deny` settings.
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.fetch.sources = try HostPolicy(
///     allow: ["*.example.org", "s3://photos"], deny: ["internal.example.org"])
/// ```
///
/// Patterns are compared with URLs in normal form. Userinfo is never mistaken for the host. Letter case and a dot at
/// the end of a name are ignored, addresses are compared as numbers, and names beyond ASCII exist only as punycode.
public struct HostPolicy: Sendable, Hashable {
    /// The allowed sources. If empty, the default, all sources are allowed.
    package var allow: [HostPattern] = []
    /// The refused sources, which take precedence over `allow`. None by default.
    package var deny: [HostPattern] = []

    /// Creates a policy that allows every source.
    public init() {}

    /// Creates a policy from patterns: `[http://|https://]HOST[:PORT][/PATH]`, or `s3://BUCKET[/KEY]`.
    ///
    /// HOST is a name, an address, `*.example.org` (names below it), `.example.org` (the name itself and names below
    /// it) or `*`. A pattern without a scheme matches any scheme except s3. In `deny`, it also matches s3. A pattern
    /// without a port matches any port. PATH matches itself and everything below it, in complete segments: `/img`
    /// matches `/img` and `/img/a`, but not `/images`.
    ///
    /// - Parameters:
    ///   - allow: the allowed sources. If empty, all sources are allowed.
    ///   - deny: the refused sources, which take precedence over `allow`.
    /// - Throws: `InvalidSetting` if a pattern has a different scheme, credentials, a query, a wildcard in a different
    ///   position, or a malformed host.
    public init(allow: [String] = [], deny: [String] = []) throws(InvalidSetting) {
        for text in allow { self.allow.append(try HostPattern(text)) }
        for text in deny { self.deny.append(try HostPattern(text)) }
    }

    package init(allow: [HostPattern] = [], deny: [HostPattern] = []) {
        self.allow = allow
        self.deny = deny
    }

    /// Returns why a URL is refused, or nil if it is allowed or has no host to check.
    package func refusal(of url: SourceURL) -> String? {
        if url.host.isEmpty { return nil }
        if let pattern = deny.first(where: { $0.matches(url, .anyReading) }) {
            return "the source matches `\(pattern)` in `sources.deny`"
        }
        guard allow.isEmpty || allow.contains(where: { $0.matches(url, .everyReading) }) else {
            return "the source does not match any pattern in `sources.allow`"
        }
        return nil
    }
}

/// A pattern that matches sources, in the format that `HostPolicy.init(allow:deny:)` describes. Create one to check a
/// string before it becomes part of a policy.
public struct HostPattern: Sendable, Hashable, CustomStringConvertible {
    /// How to compare a path that programs interpret differently. For example, an origin may treat `%2F` or `//` as a
    /// single slash.
    enum PathReading {
        /// The pattern matches if it covers at least one reading of the path.
        case anyReading
        /// The pattern matches only if it covers every reading of the path.
        case everyReading
    }

    private enum Host: Hashable {
        case any
        case exactly(String)
        case below(String)
        case within(String)
    }

    private let scheme: String?
    private let host: Host
    private let port: Int?
    private let path: String?
    /// The pattern as written.
    public let description: String

    /// Parses a pattern.
    ///
    /// - Throws: `InvalidSetting` if a pattern has a different scheme, credentials, a query, a wildcard in a different
    ///   position, or a malformed host.
    public init(_ text: String) throws(InvalidSetting) {
        description = text
        guard !text.contains("@"), !text.contains("?"), !text.contains("#"), !text.contains("\\") else {
            throw InvalidSetting(text, "must not contain credentials, a query, a fragment or a backslash")
        }
        var rest = text[...]
        if let mark = text[...].utf8.end(of: "://") {
            let name = text[..<mark].dropLast(3).lowercased()
            guard ["http", "https", "s3"].contains(name) else {
                throw InvalidSetting(text, "has the unsupported scheme `\(name)`; use http, https or s3")
            }
            scheme = name
            rest = text[mark...]
        } else {
            scheme = nil
        }
        let end = rest.firstIndex(of: "/") ?? rest.endIndex
        var authority = rest[..<end]
        let wildcard: Substring = authority.hasPrefix("*.") ? "*." : authority.hasPrefix(".") ? "." : ""
        authority = authority.dropFirst(wildcard.count)
        let isAny = authority == "*" || authority.hasPrefix("*:")
        if isAny { authority = Substring("any" + authority.dropFirst()) }
        let url: SourceURL
        do throws(SourceError) {
            // The rules for a host's path also apply to a bucket's key.
            let place = "\(authority)\(rest[end...])"
            if scheme == "s3", authority.contains(":") {
                throw SourceError(.malformed, text, "a bucket cannot have a port")
            }
            url = try SourceURL("\(scheme == "s3" ? "http" : scheme ?? "http")://" + place)
        } catch {
            throw InvalidSetting(text, "is not HOST, *.HOST, .HOST or * with an optional scheme, port and path")
        }
        let name = Self.canonical(url.host)
        guard wildcard.isEmpty || (!isAny && IPAddress(name) == nil) else {
            throw InvalidSetting(text, "must have a host name after the wildcard, not an address or `*`")
        }
        host = isAny ? .any : wildcard == "*." ? .below(name) : wildcard == "." ? .within(name) : .exactly(name)
        // A colon after the host begins a port. A host in brackets contains other colons.
        let tail = authority.lastIndex(of: "]").map { authority[$0...] } ?? authority
        port = tail.contains(":") ? url.port : nil
        path = url.path == "/" ? nil : url.path
    }

    /// The pattern as written, without its path, or nil if it has no path.
    package var withoutPath: String? {
        guard path != nil else { return nil }
        let start = description[...].utf8.end(of: "://") ?? description.startIndex
        return String(description.prefix(upTo: description[start...].firstIndex(of: "/") ?? description.endIndex))
    }

    /// Returns whether a URL matches the pattern.
    func matches(_ url: SourceURL, _ reading: PathReading) -> Bool {
        let isScheme = scheme == url.scheme || scheme == nil && (url.scheme != "s3" || reading == .anyReading)
        guard isScheme, port == nil || port == url.port else { return false }
        let name = Self.canonical(url.host)
        let isHost =
            switch host {
            case .any: true
            case .exactly(let wanted): name == wanted
            case .below(let domain): name.hasSuffix("." + domain)
            case .within(let domain): name == domain || name.hasSuffix("." + domain)
            }
        guard isHost else { return false }
        guard let path else { return true }
        let readings = [url.path, Self.lenient(url.path)]
        switch reading {
        case .anyReading: return readings.contains { Self.lies($0, within: path) }
        case .everyReading: return readings.allSatisfy { Self.lies($0, within: path) }
        }
    }

    /// Returns the host in the form for comparison, which has no dot at the end. An IPv4-mapped IPv6 address becomes an
    /// IPv4 address.
    static func canonical(_ host: String) -> String {
        let host = IPAddress.plain(host)
        return host.hasSuffix(".") ? String(host.dropLast()) : host
    }

    private static func lies(_ path: String, within folder: String) -> Bool {
        guard path.hasPrefix(folder) else { return false }
        return folder.hasSuffix("/") || path.utf8.count == folder.utf8.count
            || path.dropFirst(folder.count).hasPrefix("/")
    }

    /// Returns the path as a lenient origin may read it: completely decoded, with backslashes as slashes, without
    /// parameters after `;`, with repeated slashes merged and dot segments resolved again.
    private static func lenient(_ path: String) -> String {
        var text = path
        // Decode until nothing changes, but at most four times, because real URLs are not encoded more often.
        for _ in 0..<4 {
            let decoded = String(decoding: SourceURL.percentDecoded(text), as: UTF8.self)
            if decoded == text { break }
            text = decoded
        }
        let segments = text.replacing("\\", with: "/").split(separator: "/", omittingEmptySubsequences: true)
            .map { $0.prefix { $0 != ";" } }
        let joined = "/" + segments.joined(separator: "/") + (text.hasSuffix("/") && !segments.isEmpty ? "/" : "")
        return SourceURL.encoded(SourceURL.withoutDotSegments(joined), normalizing: false)
    }
}

extension InvalidSetting {
    /// Creates an error that shows a string, without credentials, and what is wrong with it.
    init(_ text: String, _ problem: String) { self.init("`\(SourceURL.redacting(text))` \(problem)") }
}
