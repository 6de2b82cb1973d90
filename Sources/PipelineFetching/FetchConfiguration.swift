public import PipelineSupport

/// Configures how originals are fetched: concurrency, time limits, retries, and which hosts and addresses may be
/// contacted (`PipelineConfiguration.fetch`). The limits protect against origins that are slow, broken or hostile.
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.fetch.totalTimeout = .seconds(30)
/// configuration.fetch.maxConcurrentTransfersPerHost = 2
/// configuration.fetch.sources = try HostPolicy(allow: ["*.example.org"])
/// ```
public struct FetchConfiguration: Sendable, Hashable {
    /// The maximum number of concurrent transfers that are receiving. Further transfers wait. Defaults to 16, which is
    /// enough to hide latency and few enough to be polite.
    ///
    /// Slow transfers do not count. A transfer is slow if it received less than ten times `stallRate` in one second.
    /// The first transfer of an origin also does not count if it has waited half a second. In total, 32 times as many
    /// transfers may be in progress, but at most 1,024 more than this number, and at most a quarter of the total in one
    /// network (/24 or /48). If the total is reached and an origin without any transfer is waiting, a transfer that has
    /// been slow for a quarter of `headTimeout` fails.
    public var maxConcurrentTransfers = 16
    /// The maximum number of concurrent transfers per origin, including slow transfers. Further transfers wait.
    /// Defaults to 6, as in browsers.
    public var maxConcurrentTransfersPerHost = 6
    /// The time to resolve the host, connect and complete the TLS handshake. Defaults to 4 seconds.
    public var connectTimeout = Duration.seconds(4)
    /// The time from sending the request to receiving the complete response header. Defaults to 10 seconds.
    public var headTimeout = Duration.seconds(10)
    /// The time for a complete fetch with all redirects, excluding the wait for a slot. Defaults to 15 seconds, because
    /// a server's clients are waiting. If zero, a transfer may take any time while data moves in either direction. It
    /// then ends only after `stallTimeout`.
    public var totalTimeout = Duration.seconds(15)
    /// The time over which the body must arrive at `stallRate` on average. Defaults to 5 seconds.
    public var stallTimeout = Duration.seconds(5)
    /// The rate in bytes per second below which a body counts as stalled. Defaults to 1000.
    public var stallRate = 1000
    /// The maximum number of redirects to follow. Each redirect is checked like a first request. Defaults to 10, half
    /// of what browsers follow. If 0, all redirects are refused.
    public var maxRedirects = 10
    /// The proxy for all fetches except those to link-local addresses. Defaults to nil (no proxy).
    public var proxy: FetchProxy?
    /// The path of a Unix socket that receives all requests, regardless of their host. If nil, the default, requests
    /// are sent to the host's address.
    package var unixSocket: String?
    /// The size of the largest body in bytes, checked as the body arrives. Defaults to 100 MB. A pipeline sets it to
    /// `limits.bytes`.
    package var byteLimit = 100_000_000
    /// The folder for unnamed files that hold bodies larger than `maxBytesInMemory` while they arrive. If nil, the
    /// default, bodies stay in memory. An `ImagePipeline` uses its cache folder.
    public var spoolFolder: String?
    /// The number of bytes that must stay free on the file system of `spoolFolder`. A body that would leave less space
    /// stays in memory. An `ImagePipeline` uses the floor of its disk tiers (`disk.freeSpace`).
    package var spoolFloor = 0
    /// The number of bytes of a body that are kept in memory before the rest streams to a file. Defaults to 4 MiB,
    /// which most photographs do not exceed. A transfer that begins while at least five times `maxConcurrentTransfers`
    /// are in progress keeps at most 256 KiB, so that all transfers together take no more than 550 MiB.
    public var maxBytesInMemory = 4 << 20
    /// The maximum number of field lines in a response header. A response with more lines is rejected, because the cost
    /// of lines grows faster than their number.
    static let fieldLimit = 1000
    /// The maximum size of the response header in bytes, including interim responses and trailers. Defaults to 256 KiB.
    /// libcurl accepts no line longer than 100 kB.
    public var maxHeadBytes = 262_144
    /// The number of bytes read from the body of a redirect (64 KiB). The fetch does not wait for the rest.
    static let redirectByteLimit = 65_536
    /// The maximum number of interim responses (1xx) before the final response. Real origins send no more than two or
    /// three.
    static let interimLimit = 100
    /// The sources that may be contacted. By default, all sources may be contacted.
    public var sources = HostPolicy()
    /// Header fields, credentials and certificates for individual origins. None by default.
    public var hosts: [HostOrigin: HostSettings] = [:]
    /// The maximum number of requests per second to one origin, including retries and redirects. Further requests wait,
    /// and no time limit includes that wait. Defaults to 0, which means that there is no limit.
    public var maxRequestsPerSecond = 0.0
    /// When to reject requests to an origin that keeps failing. If nil, requests are never rejected.
    public var breaker: BreakerConfiguration? = BreakerConfiguration()
    /// Addresses beyond public addresses that connections may be made to. None by default.
    public var allowPrivateAddresses = AddressRule.publicOnly
    /// Whether to use HTTP/2 if TLS negotiates it. HTTP/2 is never used over plain text. Defaults to true.
    public var http2 = true
    /// The path of a PEM file with the certificate authorities to trust. If nil, the default, the system's authorities
    /// are trusted.
    public var authoritiesFile: String?
    /// The `User-Agent` field of each request. By default, it names this program.
    public var userAgent = "image-pipeline"
    /// The entry appended to `CDN-Loop` in every request (RFC 8586), so that a server recognizes its own requests.
    /// Defaults to nil (no entry).
    package var loopEntry: String?
    /// The maximum number of further attempts after a failed attempt (`RetryingTransport`). Defaults to 2. If 0, failed
    /// requests are not retried.
    public var maxRetries = 2
    /// The time before the first retry, doubled for each further retry, with jitter down to half. Defaults to 0.2
    /// seconds.
    public var retryDelay = Duration.milliseconds(200)
    /// The longest `Retry-After` to wait for. A longer value ends the attempts. Defaults to 5 seconds.
    public var maxRetryAfter = Duration.seconds(5)

    // Transfers measure time in seconds.
    var connectSeconds: Double { connectTimeout.inSeconds }
    var headerSeconds: Double { headTimeout.inSeconds }
    var stallSeconds: Double { stallTimeout.inSeconds }
    /// The total time in seconds, or infinity if there is no limit.
    var totalSeconds: Double { totalTimeout > .zero ? totalTimeout.inSeconds : .infinity }

    /// Returns the maximum number of transfers in progress.
    static func transferLimit(slots: Int) -> Int { slots + min(31 * slots, 1024) }

    /// The number of body bytes that an attempt must add to count as progress.
    var minProgress: Int { max(1, Int(Double(stallRate) * stallSeconds)) }

    /// The seconds without an acknowledgement after which a connection fails: the longest time limit of a transfer.
    var acknowledgementSeconds: Double { min(max(headerSeconds, totalTimeout.inSeconds, 1), 86_400) }

    /// Creates a configuration with the defaults.
    public init() {}

    /// Returns the settings in `hosts` for the URL's origin.
    func settings(for url: SourceURL) -> HostSettings? { hosts.isEmpty ? nil : hosts[HostOrigin(url)] }
}
