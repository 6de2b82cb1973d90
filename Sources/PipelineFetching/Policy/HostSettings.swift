public import HTTPCaching
public import PipelineSupport

/// Configures header fields, credentials and certificate checks for one origin: `FetchConfiguration.hosts`, or the
/// `hosts` setting.
///
/// ```swift
/// var settings = HostSettings()
/// settings.authorization = "Bearer secret"
/// settings.minFreshness = .seconds(3600)
/// var configuration = PipelineConfiguration()
/// configuration.fetch.hosts[try HostOrigin("images.example.org")] = settings
/// ```
///
/// The settings apply to each hop with a URL of that origin, so they do not follow a redirect to a different origin.
/// The credentials belong to this program rather than to a client, so the caching rules do not treat them as the
/// request's `Authorization`.
public struct HostSettings: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// Header fields added to each request, unless the request has a field of the same name.
    public var fields: [HeaderField] = []
    /// The value of `Authorization` for requests that have no such field. It is `Bearer TOKEN` (RFC 6750), or uses any
    /// other scheme.
    public var authorization: String?
    /// The path of a PEM file with the certificate authorities to trust for this origin, instead of the general ones.
    public var authoritiesFile: String?
    /// Whether to accept any certificate. A machine in the middle can then read and change everything. Defaults to
    /// false.
    public var isInsecure = false

    /// Whether requests carry the trace context (with most tracers, W3C `traceparent`), so that the origin's spans join
    /// this program's traces. Defaults to false, because third parties should not see trace IDs.
    public var sendsTraceContext = false
    /// How long responses are fresh, regardless of the origin's header fields.
    package var freshness = HostFreshness()
    /// Query parameters that are sent, but are not part of the name under which records of a URL are stored. An entry
    /// is a name, a prefix followed by `*`, or `*` for all parameters. None by default.
    public var ignoredQuery: [String] = []
    /// The origin that serves the same images. Records are stored under that origin's names. Defaults to nil.
    public var alias: HostOrigin?

    /// Creates empty settings.
    public init() {}

    /// Sets credentials for basic authentication with a user and a password (RFC 7617).
    public mutating func authenticate(user: String, password: String) {
        authorization = "Basic " + Base64.text(Array("\(user):\(password)".utf8))
    }

    /// The minimum freshness of a 200 response or an intermediate redirect, in whole seconds after its arrival. If nil,
    /// the default, the origin's header fields decide.
    public var minFreshness: Duration? {
        get { freshness.atLeast.map { .seconds($0) } }
        set { freshness.atLeast = newValue.map { Int($0.components.seconds) } }
    }

    /// The maximum freshness of a response, in whole seconds after its arrival. It takes precedence over
    /// `minFreshness`. If nil, the default, the origin's header fields decide.
    public var maxFreshness: Duration? {
        get { freshness.atMost.map { .seconds($0) } }
        set { freshness.atMost = newValue.map { Int($0.components.seconds) } }
    }

    /// The `Cache-Control` directives to ignore: `no-store`, `private` and `no-cache`. Other values have no effect, and
    /// a directive that names header fields is not ignored. None by default.
    public var ignoredDirectives: Set<String> {
        get { Set(freshness.ignored.map(\.rawValue)) }
        set { freshness.ignored = Set(newValue.compactMap { HostFreshness.Directive(rawValue: $0) }) }
    }

    /// Returns whether a header field can be set. Its name must be valid and not written by the transport itself, and
    /// its value must be a single line.
    package static func mayHold(_ field: HeaderField) -> Bool {
        let own = FieldLines.hopByHop.union(["host", "content-length", "expect"])
        return FieldSyntax.isToken(field.name) && FieldSyntax.isValue(field.value)
            && !own.contains(field.name.lowercased())
    }

    /// A description without secrets.
    public var description: String { "settings of a host" }

    /// An empty mirror, so that dumps omit secrets.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// A copy with only the connection settings, without header fields or credentials.
    var withoutFields: HostSettings {
        var settings = self
        settings.fields = []
        settings.authorization = nil
        return settings
    }

    /// Returns the fields to add to a request that already has the fields `given`. These are `fields`, the credentials
    /// and, if enabled, the trace context, except those that are in `given`.
    func additions(to given: [HeaderField], trace: [HeaderField] = []) -> [HeaderField] {
        var own = fields + (sendsTraceContext ? trace.filter(Self.mayHold) : [])
        if let authorization { own.append(HeaderField("Authorization", authorization)) }
        return own.filter { given.first($0.name) == nil }
    }
}

/// Identifies the origin that `HostSettings` apply to: `[http://|https://]HOST[:PORT]`. The default scheme is https,
/// and the default port is the scheme's.
///
/// ```swift
/// let origin = try HostOrigin("images.example.org")
/// print(origin)  // https://images.example.org:443
/// ```
///
/// Credentials are sent over plain http only if the entry begins with `http://`.
public struct HostOrigin: Sendable, Hashable, CustomStringConvertible {
    /// The scheme, the host and the port, such as `https://example.org:443`.
    public let description: String

    /// Parses an origin.
    ///
    /// - Throws: `InvalidSetting` if the text contains wildcards, a path, credentials, a different scheme or a
    ///   malformed host.
    public init(_ text: String) throws(InvalidSetting) {
        let url: SourceURL
        do throws(SourceError) {
            url = try SourceURL(text.contains("://") ? text : "https://" + text)
        } catch {
            throw InvalidSetting(text, "is not HOST[:PORT], or http://HOST[:PORT] for http")
        }
        guard url.userinfo == nil, url.target == "/", !text.hasSuffix("/"), !text.contains("#") else {
            throw InvalidSetting(
                text,
                "contains more than HOST[:PORT]; remove the rest, because the settings apply to the complete origin")
        }
        self.init(url)
    }

    /// The origin without the scheme's default port.
    var origin: String {
        let usual = description.hasPrefix("https:") ? ":443" : ":80"
        return description.hasSuffix(usual) ? String(description.dropLast(usual.count)) : description
    }

    /// Creates the origin of a URL.
    package init(_ url: SourceURL) {
        let host = HostPattern.canonical(url.host)
        let name = host.contains(":") ? "[\(host)]" : host
        description = "\(url.scheme)://\(name):\(url.port)"
    }
}
