public import HTTPCaching

/// What is sent to one origin in addition, and how its certificate is checked (setting `hosts`).
///
/// Applied to each hop whose URL has that origin, so that none of it follows a redirect elsewhere. The credentials are
/// this program's own, not a client's, so caching does not treat them as the request's `Authorization`.
public struct HostSettings: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// How this program authenticates to the origin.
    public enum Credentials: Sendable, Hashable {
        /// RFC 7617.
        case basic(user: String, password: String)
        /// RFC 6750.
        case bearer(String)
    }

    /// Fields added to each request unless it has one of the same name.
    public var fields: [HeaderField] = []
    /// Sent as `Authorization` unless the request has one.
    public var credentials: Credentials?
    /// A PEM file with the authorities to trust for this origin instead of the general ones.
    public var authoritiesFile: String?
    /// Accepts any certificate, so a machine in the middle can read and change everything. Default false.
    public var isInsecure = false

    /// Whether requests carry the trace context (W3C `traceparent`, with most tracers), so that the origin's spans join
    /// this program's. Default false: others should not learn of it.
    public var sendsTraceContext = false
    /// How long responses are used, whatever the origin says; default nil: what HTTP makes of that.
    public var freshness: HostFreshness?
    /// Query fields that are sent, but do not count for the name under which records of a URL are stored: names, with `*`
    /// at the end for any that begin so, and `*` alone for all. Default none.
    public var ignoredQuery: [String] = []
    /// The origin that this one serves the same pictures as: records are stored under its names. Default nil.
    public var alias: HostOrigin?

    /// No settings.
    public init() {}

    /// Whether a field can be set: a valid name that the transport does not write itself, and a value of one line.
    package static func mayHold(_ field: HeaderField) -> Bool {
        let own = FieldLines.hopByHop.union(["host", "content-length", "expect"])
        return FieldSyntax.isToken(field.name) && FieldSyntax.isValue(field.value)
            && !own.contains(field.name.lowercased())
    }

    /// Omits the secrets.
    public var description: String { "settings of a host" }

    /// Omits the secrets.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// The settings of the connection alone, without fields and credentials.
    var withoutFields: HostSettings {
        var settings = self
        settings.fields = []
        settings.credentials = nil
        return settings
    }

    /// `fields`, the credentials, and the trace context if it is wanted, to add to a request that has `given`.
    func additions(to given: [HeaderField], trace: [HeaderField] = []) -> [HeaderField] {
        var own = fields + (sendsTraceContext ? trace.filter(Self.mayHold) : [])
        switch credentials {
        case .basic(let user, let password):
            own.append(HeaderField("Authorization", "Basic " + Base64.text(Array("\(user):\(password)".utf8))))
        case .bearer(let token): own.append(HeaderField("Authorization", "Bearer \(token)"))
        case nil: break
        }
        return own.filter { given.first($0.name) == nil }
    }
}

/// The origin that settings apply to: `[http://|https://]HOST[:PORT]`, by default https and the scheme's port.
///
/// Credentials go over plain http only if the entry says `http://`.
public struct HostOrigin: Sendable, Hashable, CustomStringConvertible {
    /// Scheme, host and a port that is not the scheme's.
    public let description: String

    /// Parses an origin.
    ///
    /// - Throws: `HostPatternError` for wildcards, paths, credentials, other schemes and malformed hosts.
    public init(_ text: String) throws(HostPatternError) {
        let url: SourceURL
        do throws(SourceError) {
            url = try SourceURL(text.contains("://") ? text : "https://" + text)
        } catch {
            throw HostPatternError(text, "is not HOST[:PORT], with http:// before it for plain http")
        }
        guard url.userinfo == nil, url.target == "/", !text.hasSuffix("/"), !text.contains("#") else {
            throw HostPatternError(text, "is more than a HOST[:PORT]; settings belong to a whole origin")
        }
        self.init(url)
    }

    /// Without the port that the scheme has anyway.
    var origin: String {
        let usual = description.hasPrefix("https:") ? ":443" : ":80"
        return description.hasSuffix(usual) ? String(description.dropLast(usual.count)) : description
    }

    /// The origin of a URL.
    package init(_ url: SourceURL) {
        let host = HostPattern.canonical(url.host)
        let name = host.contains(":") ? "[\(host)]" : host
        description = "\(url.scheme)://\(name):\(url.port)"
    }
}
