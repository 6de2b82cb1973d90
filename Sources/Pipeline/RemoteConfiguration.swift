import PipelineCaching
public import PipelineFetching
import PipelineSupport

/// An object store behind the cache folder, which several machines may share (docs/fleet.md).
///
/// It is asked for what neither memory nor the folder has, before anything is fetched or rendered, and what is new is
/// stored there behind the answer. No request fails because it does.
public struct RemoteConfiguration: Sendable, Hashable {
    /// The bucket.
    public var bucket: String
    /// What the keys begin with; several pipelines that do not share may use a bucket under prefixes of their own. Empty by
    /// default.
    public var prefix = ""
    /// Where the bucket is, and as whom it is asked.
    public var store = S3Configuration.Store()
    /// Whether credentials may be asked of the machine that runs this program (Amazon's IMDSv2). Default false.
    public var asksInstance = false
    /// Seconds that a request waits for a look-up before it counts as a miss. Default 0.5; after five failures in a row the
    /// bucket is not asked for ten seconds.
    public var seconds = 0.5
    /// Seconds that storing or purging may take.
    var storeSeconds = 10.0
    /// Bytes that may wait to be stored; what exceeds them is dropped and counted. Default 64 MB.
    public var queueBytes = 64_000_000
    /// Whether originals and their records are kept there. Default true.
    public var originals = true
    /// Whether variants are kept there. Default true.
    public var variants = true

    public init(bucket: String) { self.bucket = bucket }

    /// Whether bucket and prefix may be a place.
    package var hasPlace: Bool {
        let isPlain = prefix.utf8.allSatisfy { SourceURL.isUnreserved($0) || $0 == UInt8(ascii: "/") }
        return isPlain && !bucket.isEmpty && (try? SourceURL(s3: place, isFolder: true)) != nil
    }

    /// `s3://BUCKET/PREFIX/`
    package var place: String { "s3://\(bucket)/\(folder)" }

    /// What keys begin with: empty, or with a slash at the end.
    var folder: String { prefix.isEmpty || prefix.hasSuffix("/") ? prefix : prefix + "/" }

    /// Transfers to the bucket, which have limits of their own: origins do not wait for it, nor it for them.
    static let slots = 64

    /// The transport for the bucket.
    package func transport(_ fetching: FetchConfiguration) -> (S3Transport, base: any Transport) {
        var own = FetchConfiguration()
        (own.slots, own.perHost, own.retries) = (Self.slots, Self.slots, 1)
        own.retrySeconds = 0.05
        // The tier has a breaker of its own.
        own.breaker = nil
        own.byteLimit = fetching.byteLimit
        (own.spoolFolder, own.spoolFloor, own.spoolBytes) =
            (fetching.spoolFolder, fetching.spoolFloor, fetching.spoolBytes)
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
        placement.deadline = .seconds(seconds)
        placement.storeDeadline = .seconds(storeSeconds)
        placement.queueBytes = queueBytes
        return placement
    }
}
