/// Which sources may be contacted at all (settings `sources.allow` and `sources.deny`), at first and after a redirect.
///
/// Patterns are compared with URLs in normal form: userinfo is never taken for the host, letter case and a dot at the
/// end of a name are ignored, addresses are compared as numbers, and names beyond ASCII exist as punycode only.
public struct HostPolicy: Sendable, Hashable {
    /// Sources admitted; empty, the default, admits all.
    public var allow: [HostPattern]
    /// Sources refused, whatever `allow` says. Default none.
    public var deny: [HostPattern]

    /// A policy; without arguments it admits everything.
    public init(allow: [HostPattern] = [], deny: [HostPattern] = []) {
        self.allow = allow
        self.deny = deny
    }

    /// Why a URL is refused; nil if it is admitted, or has no host to be judged by.
    package func refusal(of url: SourceURL) -> String? {
        if url.host.isEmpty { return nil }
        if let pattern = deny.first(where: { $0.matches(url, .anyReading) }) {
            return "`\(pattern)` in `sources.deny` refuses it"
        }
        guard allow.isEmpty || allow.contains(where: { $0.matches(url, .everyReading) }) else {
            return "nothing in `sources.allow` admits it"
        }
        return nil
    }
}

/// A pattern of sources: `[http://|https://]HOST[:PORT][/PATH]`, or `s3://BUCKET[/KEY]`.
///
/// HOST is a name or address, `*.example.org` (names below it), `.example.org` (it and names below) or `*`. Without a
/// scheme any but s3 matches (in `deny` s3, too), without a port any. PATH matches itself and everything below it, by
/// whole segments: `/img` matches `/img` and `/img/a`, not `/images`.
public struct HostPattern: Sendable, Hashable, CustomStringConvertible {
    /// How to compare a path that programs interpret differently: an origin may read `%2F`, or `//`, as one slash.
    enum Reading {
        /// Matches if any reading lies within the pattern.
        case anyReading
        /// Matches only if every reading does.
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
    /// The pattern as it was written.
    public let description: String

    /// Parses a pattern.
    ///
    /// - Throws: `HostPatternError` for other schemes, credentials, queries, wildcards elsewhere and malformed hosts.
    public init(_ text: String) throws(HostPatternError) {
        description = text
        guard !text.contains("@"), !text.contains("?"), !text.contains("#"), !text.contains("\\") else {
            throw HostPatternError(text, "must not contain credentials, a query, a fragment or a backslash")
        }
        var rest = text[...]
        if let mark = text[...].utf8.end(of: "://") {
            let name = text[..<mark].dropLast(3).lowercased()
            guard ["http", "https", "s3"].contains(name) else {
                throw HostPatternError(text, "only http, https and s3 are fetched, not `\(name)`")
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
            // Of a bucket, the rules for a host's path hold for the key.
            let place = "\(authority)\(rest[end...])"
            if scheme == "s3", authority.contains(":") { throw SourceError(.malformed, text, "a bucket has no port") }
            url = try SourceURL("\(scheme == "s3" ? "http" : scheme ?? "http")://" + place)
        } catch {
            throw HostPatternError(text, "is not HOST, *.HOST, .HOST or * with optional scheme, port and path")
        }
        let name = Self.canonical(url.host)
        guard wildcard.isEmpty || (!isAny && IPAddress(name) == nil) else {
            throw HostPatternError(text, "a wildcard needs a name after it, not an address or `*`")
        }
        host = isAny ? .any : wildcard == "*." ? .below(name) : wildcard == "." ? .within(name) : .exactly(name)
        // A colon after the host begins a port; a host in brackets contains colons of its own.
        let tail = authority.lastIndex(of: "]").map { authority[$0...] } ?? authority
        port = tail.contains(":") ? url.port : nil
        path = url.path == "/" ? nil : url.path
    }

    /// The pattern as it was written, without its path; nil if it has none.
    package var withoutPath: String? {
        guard path != nil else { return nil }
        let start = description[...].utf8.end(of: "://") ?? description.startIndex
        return String(description.prefix(upTo: description[start...].firstIndex(of: "/") ?? description.endIndex))
    }

    /// Whether a URL lies within the pattern.
    func matches(_ url: SourceURL, _ reading: Reading) -> Bool {
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
        let readings = [url.path, Self.loose(url.path)]
        switch reading {
        case .anyReading: return readings.contains { Self.lies($0, within: path) }
        case .everyReading: return readings.allSatisfy { Self.lies($0, within: path) }
        }
    }

    /// The host as it is compared: without a dot at the end, and an IPv4-mapped IPv6 address as IPv4.
    static func canonical(_ host: String) -> String {
        let host = IPAddress.plain(host)
        return host.hasSuffix(".") ? String(host.dropLast()) : host
    }

    private static func lies(_ path: String, within folder: String) -> Bool {
        guard path.hasPrefix(folder) else { return false }
        return folder.hasSuffix("/") || path.utf8.count == folder.utf8.count
            || path.dropFirst(folder.count).hasPrefix("/")
    }

    /// The path as a lenient origin may read it: everything decoded, backslashes as slashes, parameters after `;`
    /// removed, repeated slashes merged, dot segments resolved again.
    private static func loose(_ path: String) -> String {
        var text = path
        // Decode until nothing changes, at most four times: no one encodes more often.
        for _ in 0..<4 {
            let decoded = String(decoding: SourceURL.percentDecoded(text), as: UTF8.self)
            if decoded == text { break }
            text = decoded
        }
        let segments = text.replacing("\\", with: "/").split(separator: "/", omittingEmptySubsequences: true)
            .map { $0.prefix { $0 != ";" } }
        let joined = "/" + segments.joined(separator: "/") + (text.hasSuffix("/") && !segments.isEmpty ? "/" : "")
        return SourceURL.encoded(SourceURL.withoutDotSegments(joined), normalising: false)
    }
}

/// Why a text is not a valid pattern of sources or origin of settings.
public struct HostPatternError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The text and what is wrong with it.
    public let message: String

    init(_ text: String, _ problem: String) { message = "`\(SourceURL.redacting(text))` \(problem)" }

    public var description: String { message }
}
