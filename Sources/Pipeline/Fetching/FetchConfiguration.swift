/// Settings of fetching. Every limit is there because an origin may be slow, broken or hostile.
public struct FetchConfiguration: Sendable, Hashable {
    /// Transfers at once; more wait. Default 16: enough to hide latency, few enough to be polite.
    public var slots = 16
    /// Transfers at once to one origin; more wait. Default 6, as browsers do.
    public var perHost = 6
    /// Seconds to resolve, connect and complete the TLS handshake. Default 4.
    public var connectSeconds = 4.0
    /// Seconds from the request to the head of its response. Default 10.
    public var headerSeconds = 10.0
    /// Seconds for a whole fetch, redirects included, waiting for a slot excluded. Default 15.
    public var totalSeconds = 15.0
    /// Seconds over which a body must arrive at `stallRate` on average. Default 5.
    public var stallSeconds = 5.0
    /// Bytes a second below which a body counts as stalled. Default 1000.
    public var stallRate = 1000
    /// Redirects followed, each admitted anew. Default 3; 0 refuses any.
    public var redirects = 3
    /// Bytes of body, counted as they arrive. Default 50 MB.
    public var byteLimit = 50_000_000
    /// Where bodies over `spoolBytes` are kept while they arrive, in files without names; nil for memory. An
    /// `ImagePipeline` takes its cache folder. Default nil.
    public var spoolFolder: String?
    /// Bytes of a body kept in memory before the rest streams to a file. Default 4 MiB: most photographs stay below, and
    /// all slots together take no more than 256 MiB.
    public var spoolBytes = 4 << 20
    /// Field lines of a head; more are a flood, and what they cost grows faster than they do.
    static let fieldLimit = 1000
    /// Bytes of head, interim responses and trailers included. Default 256 KiB; libcurl takes no line over 100 kB.
    public var headByteLimit = 262_144
    /// Bytes of body of a response that redirects; what is beyond is not waited for. 64 KiB.
    static let redirectByteLimit = 65_536
    /// Interim responses (1xx) before the final one. 100, of which nobody sends more than two or three.
    static let interimLimit = 100
    /// Sources that may be asked for. Default all.
    public var sources = HostPolicy()
    /// Fields, credentials and certificates of single origins. Default none.
    public var hosts: [HostOrigin: HostSettings] = [:]
    /// Requests a second to one origin, retries and redirects included; more wait, which no deadline counts. 0, the
    /// default, for no limit.
    public var rate = 0.0
    /// When an origin that keeps failing is left alone; nil for never.
    public var breaker: BreakerConfiguration? = BreakerConfiguration()
    /// Addresses beyond public ones that may be connected to. Default none.
    public var allowPrivateAddresses = AddressRule.none
    /// HTTP/2 where TLS negotiates it. Default true; never over plain text.
    public var http2 = true
    /// A PEM file with the certificate authorities to trust; nil, the default, for the system's.
    public var authoritiesFile: String?
    /// The `User-Agent` sent. Default names this program.
    public var userAgent = "image-pipeline"
    /// Further tries after a failed one (`RetryingTransport`); 0 for none. Default 2.
    public var retries = 2
    /// Seconds before the first retry, doubled for each after it, with jitter down to half. Default 0.2.
    public var retrySeconds = 0.2
    /// The longest `Retry-After` waited for, in seconds; a longer one ends the tries. Default 5.
    public var retryAfterLimitSeconds = 5.0

    /// The defaults.
    public init() {}

    /// What `hosts` says of the URL's origin.
    func settings(for url: SourceURL) -> HostSettings? { hosts.isEmpty ? nil : hosts[HostOrigin(url)] }
}
