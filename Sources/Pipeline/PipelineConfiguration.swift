public import CoreMetrics
import PipelineSupport
public import HTTPCaching
public import Logging
public import PipelineCaching
public import PipelineFetching
public import Tracing
public import Variants

/// All settings of an `ImagePipeline`, changed by mutation; the defaults suit a server with two cores and 4 GB.
public struct PipelineConfiguration: Sendable {
    /// The folder of the disk tiers, created on first use; nil keeps everything in memory.
    public var cacheFolder: String?
    /// Byte budgets of the memory tiers; by default a tenth of the memory available, and no decoded pixels.
    public var memory: MemoryBudgets
    /// Whether the memory tiers free half of what they hold when the kernel reports that work stalls for lack of memory
    /// (PSI), at most every two seconds. Default true; no effect if the kernel does not report it, or if the budgets
    /// total less than 64 MB.
    public var yieldsToMemoryPressure = true
    /// Byte budgets on disk, the space left free, and whether writes are forced to disk.
    public var disk = DiskStoreConfiguration()
    /// Transfers: limits, addresses, retries.
    public var fetch = FetchConfiguration()
    /// Shared or private cache, and lifetimes for responses that declare none.
    public var caching = CachingConfiguration()
    /// How far stored responses are trusted by requests that do not say; HTTP's own rules by default.
    public var policy = CachePolicy.protocol
    /// How resizing trades CPU for fidelity; `balanced` by default.
    public var quality = RenderQuality.balanced
    /// What is added up where resizing mixes pixels, unless a recipe says otherwise; `auto` by default.
    public var light = RenderLight.auto
    /// How hard encoders try to save bytes if a recipe does not say; `quick` by default. It is not part of a variant's key:
    /// what a process with `thorough` made answers the requests of one with `quick`, and the other way round.
    public var effort = RenderEffort.quick
    /// Quality, effort and the other options of outputs, by format, where a recipe gives none; default none.
    public var outputs = OutputDefaults.none
    /// Limits of a render.
    public var limits = RenderLimits()
    /// Where pictures are decoded: in this process by default, so that a decoder that crashes or is exploited takes the
    /// process with it. `.workers` renders in separate processes; use it for images from untrusted sources.
    public var isolation = RenderIsolation.inProcess
    /// Formats that `.inProcess` decodes; by default all but `ImageFormat.decodedInWorkersOnly` (AVIF and HEIF).
    public var inProcessFormats = Set(ImageFormat.decodable).subtracting(ImageFormat.decodedInWorkersOnly)
    /// Concurrent renders in this process; nil: one more than there are cores, since renders are CPU-bound.
    /// Workers have a number of their own.
    public var renderThreads: Int?
    /// The most long renders at a time; nil for one less than there are render threads or workers, but at least one, so
    /// that short ones need not wait.
    package var longRenders: Int?
    /// Named recipes: in recipe text `@card` refers to the recipe named `card`. Default none.
    /// `ImagePipeline.init` throws `invalidRecipe` if any of them does not parse.
    public var presets: [String: String] = [:]
    /// The folders below which files are sources; nil, the default, for all files.
    package var fileBounds: [OpenFolder]?
    /// The folder in which `mask:NAME` is looked up.
    public var masks: String?
    /// The folder in which `overlay:NAME` is looked up.
    public var overlays: String?
    /// Media types accepted from origins, with `*` for a subtype and the empty text for an empty `Content-Type`; a
    /// response without one is accepted, and of one with several all have to be. With the default they only guard raw
    /// responses (`OriginalRequest`): variants are made of whatever is a picture by its bytes. With others, of both.
    public var acceptedTypes = Self.usualTypes
    static let usualTypes = ["image/*", "application/octet-stream", ""]
    /// Further tiers behind memory and the cache folder, near to far, such as a service that several machines share.
    /// None by default.
    public var tiers: [TierPlacement] = []
    /// An object store behind all of them; nil, the default, for none.
    public var remote: RemoteConfiguration?
    /// How this machine and others tell each other of purges; nil, the default, if there are no others, or they share the cache
    /// folder.
    public var fleet: FleetConfiguration?
    /// Bytes that may wait for the disk; further writes are dropped (and counted) instead of queued.
    public var writeBehindBytes = 64 << 20
    /// Fetches that may be in progress and wait, and as many renders; beyond it requests fail with `overloaded`, background
    /// validations first. nil, the default, for no bound: for programs that bound their own requests.
    public var queue: Int?
    /// Threads that look things up in the caches and read files: at least 1, 4 by default. A program that makes one
    /// request at a time needs only one.
    public var lookupThreads = 4
    /// Where the buckets of `s3://BUCKET/KEY` sources are, and as whom they are asked.
    public var s3 = S3Configuration()
    /// Fetches the sources of further schemes, by scheme in lower case: `db` for the sources `db:PATH` and `db://PATH`,
    /// which are one. One for `http`, `https`, `s3` or `file` takes the place of the built-in one, and decides for itself which
    /// addresses to connect to. `id` and `bytes` are never asked for. None by default.
    public var transports: [String: any Transport] = [:]
    /// Originals that the program has itself, by the name before the colon of their sources: `photos` for `photos:42`, which
    /// then means no file of that name (`./photos:42` does). None by default. A name is a scheme, in lower case; `http`, `https`, `s3`, `file`, `id` and `bytes` are taken.
    public var providers: [String: any OriginalProvider] = [:]
    /// The file of libvips 8.14 or newer, with or without GLib in it; nil, the default, for what the loader finds. A process that
    /// renders itself (`isolation`) loads one: the first pipeline's.
    public var libvips: String?
    /// Replaces the renderer, whatever `isolation` says.
    package var renderer: (any Rendering)?
    /// Called once for every original about to be stored and for every one freshened by a 304. If it returns false,
    /// neither the original nor its variants are stored; otherwise the candidate is stored as the hook leaves it. It
    /// runs before the answer is returned and should be quick. nil, the default, stores what HTTP permits.
    ///
    /// The rules of HTTP come first: the hook is not called for responses that HTTP forbids storing.
    public var willStore: (@Sendable (inout StoredOriginalCandidate) -> Bool)?
    /// Unix seconds; tests set their own clock.
    var now: @Sendable () -> Double = { SystemClock.unix.seconds }
    /// The log: each request at level debug, with metadata `source` (without credentials), `key` and `stage`; at level
    /// warning, once for each kind, errors that cost no answer, such as a cache that cannot be written.
    public var logger = Logger(label: "image-pipeline")
    /// Where metrics (docs/metrics.md) are reported; nil, the default, for the factory that `MetricsSystem` was
    /// bootstrapped with before the pipeline is made. Without one nothing is measured.
    public var metrics: (any MetricsFactory)?
    /// Where requests and their stages are traced; nil, the default, for the tracer that `InstrumentationSystem` was
    /// bootstrapped with before the pipeline is made. Without one there are no spans.
    public var tracer: (any Tracer)?

    public init(memory: MemoryBudgets = .share(0.1)) { self.memory = memory }
}

extension MemoryBudgets {
    /// A share (0…1) of the memory this process may use: two fifths of it for originals, three for variants, which
    /// are small and requested most.
    public static func share(_ share: Double) -> MemoryBudgets {
        let bytes = Double(MachineMemory.bytes) * min(max(share, 0), 1)
        return MemoryBudgets(originals: Int(bytes * 0.4), variants: Int(bytes * 0.6))
    }
}

extension TiersConfiguration {
    /// - Parameter remote: what is asked last.
    init(_ configuration: PipelineConfiguration, remote: TierPlacement? = nil) {
        self.init(memory: configuration.memory)
        folder = configuration.cacheFolder
        tiers = configuration.tiers + [remote].compactMap(\.self)
        now = configuration.now
        disk = configuration.disk
        writeBehindBytes = configuration.writeBehindBytes
        longestInMemory = configuration.fetch.spoolBytes
        warn = { [logger = configuration.logger] in logger.warning("\($0)") }
        // At most a little longer than one full attempt: a process that has stored nothing by then is stuck or retrying.
        // Where a fetch may take any time, as with the usual limit: other processes do not wait for a slow line.
        let own = configuration.fetch.totalSeconds
        let total = own > 0 ? own : FetchConfiguration().totalSeconds
        waits.original = .seconds(total / 10) ... .seconds(total + 5)
        waits.variant = .seconds(configuration.limits.seconds + configuration.limits.encodeSeconds + 5)
    }
}
