public import CoreMetrics
import PipelineSupport
public import HTTPCaching
public import Logging
public import PipelineCaching
public import PipelineFetching
public import Tracing

/// Configures an `ImagePipeline`: its caches, transfers, rendering and hooks. Set its properties, then pass it to
/// `ImagePipeline.init(_:)`.
///
/// ```swift
/// var configuration = PipelineConfiguration(cacheFolder: "/var/cache/my-app")
/// configuration.memory = MemoryBudgets(originals: 64 << 20, variants: 128 << 20)
/// configuration.fetch.totalTimeout = .seconds(30)
/// configuration.rendering.presets["card"] = "thumbnail:300x200:fill,webp"
/// let pipeline = try ImagePipeline(configuration)
/// ```
///
/// The defaults suit a server with two cores and 4 GB of memory.
public struct PipelineConfiguration: Sendable {
    /// The folder for the disk tiers, created on first use. If nil, the default, all entries are kept in memory.
    public var cacheFolder: String?
    /// The budgets of the memory tiers, in bytes. By default, they total a tenth of the available memory, and decoded
    /// pixels are not kept.
    public var memory: MemoryBudgets
    /// Whether the memory tiers free half of their contents when the kernel reports that work stalls for lack of memory
    /// (PSI). They do so at most every two seconds. Defaults to true. The setting has no effect if the kernel does not
    /// report memory pressure, or if the budgets total less than 64 MB.
    public var yieldsToMemoryPressure = true
    /// The budgets on disk in bytes, the free space to keep, and whether writes are synchronized to disk.
    public var disk = DiskStoreConfiguration()
    /// The settings of transfers: limits, addresses and retries.
    public var fetch = FetchConfiguration()
    /// The rules of HTTP caching: shared or private cache, and lifetimes for responses that declare none.
    public var caching = CachingConfiguration()
    /// The policy for using stored responses, for requests that do not specify one. By default, the rules of HTTP
    /// apply.
    public var policy = CachePolicy.protocol
    /// How and where pictures are rendered.
    public var rendering = RenderingConfiguration()
    /// The folders that sources may be read from. If nil, the default, all files are permitted.
    package var fileBounds: [OpenFolder]?
    /// The media types accepted from origins, with `*` for a subtype and the empty string for an empty `Content-Type`.
    ///
    /// A response without a type is accepted. If a response has several types, all of them must match. The default
    /// applies only to raw responses (`OriginalRequest`), because for variants, the bytes decide whether the response
    /// is a picture. Any other value applies to both.
    public var acceptedTypes = Self.usualTypes
    static let usualTypes = ["image/*", "application/octet-stream", ""]
    /// Further tiers behind memory and the cache folder, from nearest to farthest, such as a service that several
    /// machines share. None by default.
    public var tiers: [TierPlacement] = []
    /// An object store behind all other tiers. Defaults to nil.
    public var remote: RemoteConfiguration?
    /// How this machine and others exchange purges. Leave it nil, the default, if there are no other machines or if
    /// they share the cache folder.
    public var fleet: FleetConfiguration?
    /// The maximum number of bytes waiting to be written to disk. Further writes are dropped and counted.
    public var writeBehindBytes = 64 << 20
    /// The maximum number of fetches in progress or waiting, and separately of renders. Beyond this limit, requests
    /// fail with `overloaded`, and background validations are refused first. If nil, the default, there is no limit,
    /// which suits programs that bound their own requests.
    public var maxWaiting: Int?
    /// The number of concurrent cache look-ups and file reads. Each uses a thread. The number is at least 1, and
    /// defaults to 4. A program that makes one request at a time needs only 1.
    public var maxConcurrentLookups = 4
    /// The endpoints and credentials for `s3://BUCKET/KEY` sources.
    public var s3 = S3Configuration()
    /// Transports for further schemes, by scheme in lowercase. None by default.
    ///
    /// A transport for `db` fetches the sources `db:PATH` and `db://PATH`, which are equivalent. A transport for
    /// `http`, `https`, `s3` or `file` replaces the built-in one, and decides which addresses it connects to.
    /// Transports for `id` and `bytes` are never used.
    public var transports: [String: any Transport] = [:]
    /// Originals that the program supplies itself, by the name before the colon in their sources. None by default.
    ///
    /// With a provider named `photos`, the source `photos:42` no longer means a file with that name (`./photos:42`
    /// does). A name must be a valid URL scheme in lowercase. The names `http`, `https`, `s3`, `file`, `id` and `bytes`
    /// are reserved.
    public var providers: [String: any OriginalProvider] = [:]
    /// Called before each GET request for an original, including retries and validations. Use this hook to set header
    /// fields, such as a token that expires. Defaults to nil.
    ///
    /// Only changes to `fields` have an effect, except for `Range` and conditions. Caching does not see the fields, so
    /// all users of the pipeline receive the responses.
    ///
    /// `url` is the URL of this request, including after redirects. A redirect to another origin is followed without
    /// calling the hook, and without credentials or the fields that the hook has set. The hook is not called for hits,
    /// files or `s3` sources, nor for `transports` or `providers`.
    ///
    /// The time that the hook takes counts toward `fetch.totalTimeout`. If that limit is disabled, the hook may take
    /// `fetch.headTimeout`. The hook is cancelled with the fetch. If the hook throws, the fetch is not retried. It
    /// fails with `fetchFailed` and the error as its cause, unless a stale original may be used.
    public var willSend: (@Sendable (inout FetchRequest) async throws -> Void)?
    /// Called once for every original that is about to be stored, and for every original freshened by a 304. If nil,
    /// the default, everything that HTTP permits is stored.
    ///
    /// If the hook returns false, neither the original nor its variants are stored. Otherwise the candidate is stored
    /// with the changes that the hook has made. The hook runs before the response is returned, so it should be fast.
    ///
    /// The rules of HTTP take precedence, so the hook is not called for responses that must not be stored.
    public var willStore: (@Sendable (inout StoredOriginalCandidate) -> Bool)?
    /// Returns the current time in Unix seconds. Tests replace the clock.
    var now: @Sendable () -> Double = { SystemClock.unix.seconds }
    /// The logger. Each request is logged at level debug, with the metadata `source` (without credentials), `key` and
    /// `stage`. Errors that do not fail a request, such as a cache that cannot be written, are logged at level warning,
    /// once for each kind.
    public var logger = Logger(label: "image-pipeline")
    /// The factory for metrics (docs/metrics.md). If nil, the default, the pipeline uses the factory that
    /// `MetricsSystem` was bootstrapped with before the pipeline is created. If no factory is available, metrics are
    /// not recorded.
    public var metrics: (any MetricsFactory)?
    /// The tracer for requests and their stages. If nil, the default, the pipeline uses the tracer that
    /// `InstrumentationSystem` was bootstrapped with before the pipeline is created. If no tracer is available, spans
    /// are not created.
    public var tracer: (any Tracer)?

    /// Creates a configuration with the defaults for all other settings.
    public init(cacheFolder: String? = nil, memory: MemoryBudgets = .share(0.1)) {
        self.cacheFolder = cacheFolder
        self.memory = memory
    }
}

extension MemoryBudgets {
    /// Returns budgets that total a fraction of the memory this process may use, 0…1. Originals get two fifths.
    /// Variants get three fifths, because they are small and requested most often.
    public static func share(_ share: Double) -> MemoryBudgets {
        let bytes = Double(MachineMemory.bytes) * min(max(share, 0), 1)
        return MemoryBudgets(originals: Int(bytes * 0.4), variants: Int(bytes * 0.6))
    }
}

extension TiersConfiguration {
    /// - Parameter remote: the tier that is queried last.
    init(_ configuration: PipelineConfiguration, remote: TierPlacement? = nil) {
        self.init(memory: configuration.memory)
        folder = configuration.cacheFolder
        tiers = configuration.tiers + [remote].compactMap(\.self)
        now = configuration.now
        disk = configuration.disk
        writeBehindBytes = configuration.writeBehindBytes
        longestInMemory = configuration.fetch.maxBytesInMemory
        warn = { [logger = configuration.logger] in logger.warning("\($0)") }
    }
}
