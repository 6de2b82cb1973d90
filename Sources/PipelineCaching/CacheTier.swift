public import PipelineSupport

/// Stores originals, their records and their variants, for example in a service that several machines share. Add a tier
/// to `PipelineConfiguration.tiers` in a `TierPlacement`. This tier keeps the bodies of originals in memory:
///
/// ```swift
/// actor BodyTier: CacheTier {
///     nonisolated let name = TierName("bodies")
///     private var bodies: [String: EntryBody] = [:]
///     func find(_ key: EntryKey, _ part: EntryPart) -> FoundEntry? {
///         guard case .original(let digest) = key, let body = bodies[digest] else { return nil }
///         return .original(part == .body ? body : nil)
///     }
///     func store(_ changes: [EntryChange]) {
///         for case .original(let record, let body?) in changes.map(\.kind) { bodies[record.digest] = body }
///     }
///     func purge(_ selection: EntrySelection) -> PurgeResult {
///         bodies = [:]  // A tier may remove more than was selected.
///         return PurgeResult()
///     }
///     func statistics() -> TierStatistics { TierStatistics() }
/// }
/// ```
///
/// The pipeline looks in memory first, then in its tiers from near to far. An entry found in one tier is copied to the
/// nearer tiers. A new entry is stored in all tiers in the background, after the response. The failure of a tier never
/// makes a request fail: if a call fails or takes too long, a look-up counts as a miss, and a write is skipped.
///
/// The methods may be called by any task at any time. A miss is never an error. The pipeline closes only the tiers that
/// it opened itself. Close other tiers after `ImagePipeline.shutdown()`. `CacheTierConformance` checks an
/// implementation.
public protocol CacheTier: Sendable {
    /// The name in reports and in `Cache-Status`. It must differ from the names of the pipeline's other tiers.
    var name: TierName { get }

    /// Returns the entry under a key, or only its description. Returns nil if the tier does not contain the entry.
    ///
    /// Only a look-up of `.body` counts as an access to an original or a variant.
    func find(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry?

    /// Stores changes in order. If the tier has transactions, all changes are in one transaction. Otherwise, the
    /// changes before an error remain stored.
    ///
    /// A change that does not fit in the tier is silently skipped. A record may be kept without its body. The pipeline
    /// calls this method and `purge(_:)` one at a time, unless a call takes too long. It does not pass on changes that
    /// are older than a matching purge.
    func store(_ changes: [EntryChange]) async throws(StoreError)

    /// Removes everything that a selection covers. The selection's `mode` may restrict what is removed, but a tier may
    /// always remove more.
    func purge(_ selection: EntrySelection) async throws(StoreError) -> PurgeResult

    /// Returns the contents and counters of the tier.
    func statistics() async throws(StoreError) -> TierStatistics
}

/// A tier that skips changes that are older than a matching purge: a change is skipped if its source, or the original
/// that it belongs to, was purged since the change's mark. After a purge has returned, no entry with an older mark
/// becomes visible.
package protocol MarkedTier: CacheTier {
    /// The current mark, for work that begins now. Reading it does not contact the tier.
    var mark: PurgeMark { get }

    /// Called after another machine has applied a purge (`PipelineConfiguration.fleet`). If both machines use this
    /// tier, its knowledge of purges is now outdated.
    ///
    /// - Returns: whether the other machine purged this tier. If not, the pipeline purges the tier itself.
    func wasPurgedElsewhere(_ selection: EntrySelection) -> Bool

    /// Removes copies of this tier's entries from nearer tiers if a purge by another machine covers them.
    func catchUp() async
}

/// Names a tier in reports, in `Cache-Status` and in `ImageResponse.outcome`. The names of a pipeline's tiers must
/// differ.
public struct TierName: Sendable, Hashable, CustomStringConvertible {
    /// The name in `Cache-Status` and reports.
    public let description: String

    /// Creates a name, which `Cache-Status` and reports show unchanged.
    public init(_ name: String) { description = name }

    /// The memory of this process.
    public static let memory = TierName("memory")
    /// The cache folder.
    public static let disk = TierName("disk")
    /// A service on another machine.
    public static let remote = TierName("remote")
}

/// Identifies the entry that `CacheTier.find(_:_:)` looks up.
public enum EntryKey: Sendable, Hashable {
    /// The records of a source as one entry, with one record for each selection that the source's `Vary` has led to.
    /// Names are compared by their bytes, so names that are equal as Swift strings, such as é in two encodings, may be
    /// two sources.
    case records(source: String)
    /// The body of an original, identified by the SHA-256 of its bytes.
    case original(String)
    /// A variant, identified by its key and by the digest of the original that it was rendered from.
    case variant(String, of: String)
}

/// Specifies whether `CacheTier.find(_:_:)` returns the body of an entry or only its metadata.
public enum EntryPart: Sendable, Hashable {
    /// The metadata only.
    case description
    /// The metadata and the body.
    case body
}

/// Contains an entry that `CacheTier.find(_:_:)` found.
public enum FoundEntry: Sendable {
    /// The records of a source, newest first. The array is never empty.
    case records([OriginalRecord])
    /// The body of an original, or nil if only its description was requested.
    case original(EntryBody?)
    /// A variant. The body is nil if only the description was requested.
    case variant(VariantEntry, body: [UInt8]?)
}

/// Describes a change that `CacheTier.store(_:)` applies to a tier. Switch over `kind`.
public struct EntryChange: Sendable {
    /// The kind of change.
    public enum Kind: Sendable {
        /// Stores a record, replacing the record of the same selection (`OriginalRecord.hasSameSelection(as:)`), and
        /// its body. A nil body leaves the stored body unchanged.
        case original(OriginalRecord, body: EntryBody?)
        /// Replaces the header fields and times of a stored record. Has no effect if the record is not stored.
        case freshenedRecord(OriginalRecord)
        /// Removes the record with the same source and selection. The tier may also remove the record's body. Its
        /// variants stay.
        case removedRecord(OriginalRecord)
        /// Stores a variant, replacing the variant under the same key. `source` is the source of its original, so that
        /// a purge of that source finds the variant.
        case variant(VariantEntry, body: [UInt8], source: String?)
    }

    /// The kind of change.
    public var kind: Kind
    /// The tier's mark at the time when the work began.
    package var mark: PurgeMark

    /// Creates a change from work that begins now.
    public init(_ kind: Kind) { self.init(kind, mark: PurgeMark(UInt64(Int.max))) }

    package init(_ kind: Kind, mark: PurgeMark) {
        self.kind = kind
        self.mark = mark
    }
}

/// Specifies what `ImagePipeline.purge(_:mode:)` does with the selected entries.
public enum PurgeMode: String, Sendable, Hashable, CaseIterable {
    /// Removes everything at once.
    case hard
    /// Removes nothing, but makes records stale. Each record may be used one more time while it is validated in the
    /// background. It is validated first if its directives require that (`no-cache`, `must-revalidate`, …).
    case soft
    /// Removes only variants, at once. Originals do not change.
    case variantsOnly
}

/// Selects the entries that `CacheTier.purge(_:)` removes: the records of the selected sources, their bodies unless a
/// record of a different source refers to them, and all variants of every digest that these sources are known to have
/// had.
public struct EntrySelection: Sendable, Hashable {
    /// The names of the sources.
    public package(set) var sources: Set<String> = []
    /// Additional sources, selected by prefix.
    package var matching: SourceSelection?
    /// Additional originals of these sources, for which the tier may have no record.
    public package(set) var digests: Set<String> = []
    /// The kind of purge.
    public package(set) var mode = PurgeMode.hard

    /// Creates a selection, for example for tests of a tier.
    ///
    /// - Parameters:
    ///   - sources: the names of sources.
    ///   - prefixes: prefixes of further names, compared byte by byte.
    ///   - digests: the digests of further originals.
    ///   - mode: the kind of purge.
    public init(
        sources: Set<String> = [], prefixes: [String] = [], digests: Set<String> = [], mode: PurgeMode = .hard
    ) {
        let matching = SourceSelection(prefixes: prefixes)
        self.init(
            sources: sources, matching: matching.prefixes.isEmpty ? nil : matching, digests: digests, mode: mode)
    }

    package init(
        sources: Set<String> = [], matching: SourceSelection?, digests: Set<String> = [], mode: PurgeMode = .hard
    ) {
        self.sources = sources
        self.matching = matching
        self.digests = digests
        self.mode = mode
    }

    /// The prefixes of additional sources, compared byte by byte.
    public var prefixes: [String] { matching?.prefixes ?? [] }

    var isEmpty: Bool { sources.isEmpty && digests.isEmpty && prefixes.isEmpty }

    /// Returns whether a source is in `sources` or begins with one of the prefixes.
    public func contains(_ source: String) -> Bool {
        sources.contains(source) || matching?.contains(source) == true
    }

    /// A selection that removes nothing and invalidates all work in progress, whatever its source. No source has an
    /// empty name.
    static let workInFlight = EntrySelection(sources: [""])
}

/// Counts the entries that a purge removed, and names the tiers that did not confirm the purge.
public struct PurgeResult: Sendable, Hashable {
    /// The number of sources that had stored entries.
    public var sources = 0
    /// The number of records removed, or made stale by a soft purge.
    public var records = 0
    /// The number of bodies of originals removed.
    public var originals = 0
    /// The number of variants removed.
    public var variants = 0
    /// The number of bytes in the removed bodies and variants.
    public var bytes = 0
    /// All digests that the sources are known to have had. Other tiers use them to remove variants.
    public var digests: Set<String> = []
    /// The mark of the purge. Work that began at an earlier mark can no longer store entries of these sources.
    package var mark = PurgeMark(0)
    /// The tiers that failed or timed out. They may still contain purged entries, but this process no longer uses these
    /// entries.
    public var unconfirmed: [TierName] = []
    /// The purges that these tiers have not confirmed.
    package var unconfirmedSelections: [EntrySelection] = []

    /// Creates the result of a purge that removed nothing.
    public init() {}
}

/// Reports the contents and counters of a tier, separately for originals, variants and records. Counters stay zero for
/// kinds of entries without a separate budget.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// let memory = pipeline.memoryStatistics.variants
/// print(memory.entries, "variants in memory,", memory.bytes, "of", memory.budget, "bytes")
/// ```
public struct TierStatistics: Sendable, Hashable {
    /// Bodies of originals.
    public var originals = StoreCounters()
    /// Variants.
    public var variants = StoreCounters()
    /// Records of originals.
    public var records = StoreCounters()
    /// Decoded pixels, which are stored in memory only.
    package var pixels = StoreCounters()

    /// Creates statistics from counters.
    public init(
        originals: StoreCounters = StoreCounters(), variants: StoreCounters = StoreCounters(),
        records: StoreCounters = StoreCounters()
    ) {
        self.originals = originals
        self.variants = variants
        self.records = records
    }
}

/// Adds a `CacheTier` to a pipeline, behind memory and the cache folder, with limits on its use
/// (`PipelineConfiguration.tiers`).
///
/// ```swift
/// func configuration(with tier: any CacheTier) -> PipelineConfiguration {
///     var placement = TierPlacement(tier)
///     placement.deadline = .milliseconds(100)
///     placement.maxConcurrentCalls = 32
///     var configuration = PipelineConfiguration()
///     configuration.tiers = [placement]
///     return configuration
/// }
/// ```
public struct TierPlacement: Sendable {
    /// The tier.
    public var tier: any CacheTier
    /// The time that a request waits for a look-up before it counts as a miss. Defaults to 250 ms.
    public var deadline = Duration.milliseconds(250)
    /// The time after which a store or a purge counts as failed. Defaults to 10 s.
    public var storeDeadline = Duration.seconds(10)
    /// The number of calls in progress above which the tier is skipped. A call that is cancelled at the deadline but
    /// ignores this counts until it returns. Defaults to 64.
    public var maxConcurrentCalls = 64
    /// Determines when to skip a tier that keeps failing. By default, the tier is skipped for 10 s after 5 consecutive
    /// failures.
    public var breaker: BreakerConfiguration
    /// The maximum number of bytes waiting to be stored. Further changes are dropped and counted. Defaults to 64 MB.
    public var queueBytes = 64 << 20

    /// Places a tier with the default limits.
    public init(_ tier: any CacheTier) {
        self.tier = tier
        breaker = BreakerConfiguration()
        breaker.failures = 5
    }
}
