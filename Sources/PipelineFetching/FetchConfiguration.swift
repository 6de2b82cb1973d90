public import PipelineSupport

/// Settings for fetching. Every limit exists because an origin may be slow, broken or hostile.
public struct FetchConfiguration: Sendable, Hashable {
    /// Concurrent transfers that receive; further ones wait. Default 16: enough to hide latency, few enough to be polite.
    ///
    /// Transfers that a second brought less than ten times `stallRate` do not count, nor does the first one of an origin
    /// that has waited half a second. In all 32 times as many may be under way, at most 1,024 more than `slots`, and a
    /// quarter of these in one network (/24 or /48). Beyond that the one that has been slow longest fails if an origin
    /// without any waits, after a quarter of `headerSeconds`.
    public var slots = 16
    /// Concurrent transfers to one origin, slow ones included; further ones wait. Default 6, as browsers do.
    public var perHost = 6
    /// Seconds to resolve, connect and complete the TLS handshake. Default 4.
    public var connectSeconds = 4.0
    /// Seconds from the request to the head of its response. Default 10.
    public var headerSeconds = 10.0
    /// Seconds for a whole fetch, redirects included, waiting for a slot excluded. Default 15, for servers whose clients
    /// wait. With 0 a transfer may take as long as it moves, in either direction: only `stallSeconds` ends it.
    public var totalSeconds = 15.0
    /// Seconds over which a body must arrive at `stallRate` on average. Default 5.
    public var stallSeconds = 5.0
    /// Bytes per second below which a body counts as stalled. Default 1000.
    public var stallRate = 1000
    /// Redirects followed, each checked like a first request. Default 10, half of what browsers follow; 0 refuses any.
    public var redirects = 10
    /// The proxy that fetches go through, except to link-local addresses. Default nil: none.
    public var proxy: FetchProxy?
    /// The Unix socket that all requests go to, whatever their host; nil, the default, for the host's address.
    package var unixSocket: String?
    /// The largest body in bytes, counted as it arrives. Default 100 MB; a pipeline sets it to `limits.bytes`.
    package var byteLimit = 100_000_000
    /// The folder for bodies over `spoolBytes` while they arrive, in files without names; nil, the default, keeps them
    /// in memory. An `ImagePipeline` uses its cache folder.
    public var spoolFolder: String?
    /// Bytes that files of bodies leave free on the file system of `spoolFolder`; what would leave less stays in memory.
    /// An `ImagePipeline` uses the floor of its disk tiers (`disk.freeSpace`).
    package var spoolFloor = 0
    /// Bytes of a body kept in memory before the rest streams to a file. Default 4 MiB: most photographs stay below. A
    /// transfer that begins while five times `slots` are under way keeps at most 256 KiB, so that all together take no
    /// more than 550 MiB.
    public var spoolBytes = 4 << 20
    /// The most field lines in a head; further ones are a flood, and their cost grows faster than their number.
    static let fieldLimit = 1000
    /// Bytes of head, interim responses and trailers included. Default 256 KiB; libcurl accepts no line over 100 kB.
    public var headByteLimit = 262_144
    /// Bytes read of a redirect's body; the rest is not waited for. 64 KiB.
    static let redirectByteLimit = 65_536
    /// The most interim responses (1xx) before the final one. 100; real origins send no more than two or three.
    static let interimLimit = 100
    /// Sources that may be contacted. Default all.
    public var sources = HostPolicy()
    /// Fields, credentials and certificates for individual origins. Default none.
    public var hosts: [HostOrigin: HostSettings] = [:]
    /// Requests per second to one origin, retries and redirects included; further ones wait, and no deadline counts
    /// that time. 0, the default, means no limit.
    public var rate = 0.0
    /// When requests to an origin that keeps failing are rejected; nil for never.
    public var breaker: BreakerConfiguration? = BreakerConfiguration()
    /// Addresses beyond public ones that may be connected to. Default none.
    public var allowPrivateAddresses = AddressRule.none
    /// Whether HTTP/2 is used if TLS negotiates it. Default true; never over plain text.
    public var http2 = true
    /// A PEM file with the certificate authorities to trust; nil, the default, uses the system's.
    public var authoritiesFile: String?
    /// The `User-Agent` sent. Default names this program.
    public var userAgent = "image-pipeline"
    /// Appended to `CDN-Loop` in every request (RFC 8586), so that a server recognises its own; nil, the default, for
    /// nothing.
    package var loopEntry: String?
    /// Further attempts after a failed one (`RetryingTransport`); 0 for none. Default 2.
    public var retries = 2
    /// Seconds before the first retry, doubled for each after it, with jitter down to half. Default 0.2.
    public var retrySeconds = 0.2
    /// The longest `Retry-After` waited for, in seconds; a longer one ends the attempts. Default 5.
    public var retryAfterLimitSeconds = 5.0

    /// The most transfers under way.
    static func transferLimit(slots: Int) -> Int { slots + min(31 * slots, 1024) }

    /// The bytes of a body that an attempt must add to count as progress.
    var leastProgress: Int { max(1, Int(Double(stallRate) * stallSeconds)) }

    /// Seconds without an acknowledgement after which a connection fails: the longest limit of a transfer.
    var acknowledgementSeconds: Double { min(max(headerSeconds, totalSeconds, 1), 86_400) }

    /// `totalSeconds`, or infinity without a limit.
    package var totalLimit: Double { totalSeconds > 0 ? totalSeconds : .infinity }

    /// The defaults.
    public init() {}

    /// The settings in `hosts` for the URL's origin.
    func settings(for url: SourceURL) -> HostSettings? { hosts.isEmpty ? nil : hosts[HostOrigin(url)] }
}
