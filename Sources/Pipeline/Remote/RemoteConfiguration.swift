import PipelineCaching
public import PipelineFetching
import PipelineSupport

/// Configures an object store behind the cache folder, which several machines may share
/// (`PipelineConfiguration.remote`; docs/fleet.md).
///
/// ```swift
/// var remote = RemoteConfiguration(bucket: "image-cache")
/// remote.store.endpoint = "https://s3.example.org"
/// remote.store.credentials = .profile("images")
/// var configuration = PipelineConfiguration(cacheFolder: "/var/cache/my-app")
/// configuration.remote = remote
/// ```
///
/// The store is queried for entries that are neither in memory nor in the folder, before a fetch or render begins. New
/// entries are stored in the background. Requests never fail because the store does.
public struct RemoteConfiguration: Sendable, Hashable {
    /// The name of the bucket.
    public var bucket: String
    /// The prefix of all keys. Several pipelines with separate entries may use one bucket under different prefixes.
    /// Empty by default.
    public var prefix = ""
    /// The endpoint and credentials of the bucket.
    public var store = S3Configuration.Store()
    /// Whether credentials may be requested from the instance metadata service of the machine (Amazon's IMDSv2).
    /// Defaults to false.
    public var asksInstance = false
    /// How long a request waits for a look-up before the look-up counts as a miss. Defaults to 500 ms. After five
    /// consecutive failures, the bucket is not contacted for ten seconds.
    public var timeout = Duration.milliseconds(500)
    /// The time limit for a store or a purge.
    var storeTimeout = Duration.seconds(10)
    /// The maximum number of bytes waiting to be stored. Entries beyond this limit are dropped and counted. Defaults to
    /// 64 MB.
    public var queueBytes = 64_000_000
    /// Whether the bucket keeps originals and their records. Defaults to true.
    public var originals = true
    /// Whether the bucket keeps variants. Defaults to true.
    public var variants = true

    /// Creates a configuration for a bucket with the defaults for all other settings.
    public init(bucket: String) { self.bucket = bucket }

    /// Whether the bucket and the prefix are valid.
    package var hasLocation: Bool {
        let isPlain = prefix.utf8.allSatisfy { SourceURL.isUnreserved($0) || $0 == UInt8(ascii: "/") }
        return isPlain && !bucket.isEmpty && (try? SourceURL(s3: location, isFolder: true)) != nil
    }

    /// The URL of the entries, `s3://BUCKET/PREFIX/`.
    package var location: String { "s3://\(bucket)/\(folder)" }

    /// The prefix of keys, which is empty or ends in a slash.
    var folder: String { prefix.isEmpty || prefix.hasSuffix("/") ? prefix : prefix + "/" }

    /// The number of concurrent transfers to the bucket. Transfers to origins have separate limits, so neither waits
    /// for the other.
    static let slots = 64

    /// Creates the transport for the bucket.
    package func transport(_ fetching: FetchConfiguration) -> (S3Transport, base: any Transport) {
        var own = FetchConfiguration()
        (own.maxConcurrentTransfers, own.maxConcurrentTransfersPerHost) = (Self.slots, Self.slots)
        (own.maxRetries, own.retryDelay) = (1, .milliseconds(50))
        // The tier already has a circuit breaker.
        own.breaker = nil
        own.byteLimit = fetching.byteLimit
        (own.spoolFolder, own.spoolFloor, own.maxBytesInMemory) =
            (fetching.spoolFolder, fetching.spoolFloor, fetching.maxBytesInMemory)
        (own.authoritiesFile, own.userAgent, own.proxy) =
            (fetching.authoritiesFile, fetching.userAgent, fetching.proxy)
        own.allowPrivateAddresses = fetching.allowPrivateAddresses
        var s3 = S3Configuration()
        (s3.store, s3.asksInstance) = (store, asksInstance)
        let base = RetryingTransport(CurlTransport(own), configuration: own)
        return (S3Transport(base, s3), base)
    }

    func placement(_ transport: S3Transport) -> TierPlacement {
        var placement = TierPlacement(
            ObjectTier(S3ObjectStore(self, transport), originals: originals, variants: variants))
        placement.deadline = timeout
        placement.storeDeadline = storeTimeout
        placement.queueBytes = queueBytes
        return placement
    }
}
