public import PipelineSupport

/// A place that keeps originals, their records and variants: everything the pipeline asks of one.
///
/// The pipeline looks in memory first, then in its tiers from near to far. An entry found in one tier is copied to the
/// nearer ones, and a new entry is stored in all of them behind the answer. No request fails because a tier does: an
/// error or a call that takes too long counts as a miss or as a store that did not happen.
///
/// Any task may make any call at any time. A miss is never an error. The pipeline closes only tiers it opened itself;
/// close others after `ImagePipeline.shutdown()`. `CacheTierConformance` checks an implementation.
public protocol CacheTier: Sendable {
    /// The name in reports and in `Cache-Status`; different from that of every other tier of the pipeline.
    var name: TierName { get }

    /// The entry under a key, or what is known of it; nil if it is not there (any more).
    ///
    /// Only a look-up of `.body` counts as an access to an original or a variant.
    func find(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry?

    /// Stores changes in order, in one transaction if the tier has any; without one, those before an error stay.
    ///
    /// A change is skipped, silently, if its source, or the original it belongs to, was purged since its mark, or if
    /// there is no room for it. The purge and this check must not overlap: after a purge has returned, nothing that
    /// carries an older mark becomes visible. A record may be kept without its body.
    func store(_ changes: [EntryChange]) async throws(StoreError)

    /// Removes everything that a selection covers, and voids changes whose marks are older. Its `mode` may ask for less
    /// than that; a tier may always remove more.
    func purge(_ selection: PurgeSelection) async throws(StoreError) -> PurgeResult

    /// Told of a purge that another machine has carried out (`PipelineConfiguration.fleet`), for a tier that both use: what it
    /// knows of purges is old.
    ///
    /// - Returns: whether the tier was purged there; with false, the default, the pipeline purges it here too.
    func wasPurgedElsewhere(_ selection: PurgeSelection) -> Bool

    /// What was purged since a mark, by this or any other user of the tier; without a mark, nothing but the mark of now.
    func purges(since mark: PurgeMark?) async throws(StoreError) -> PurgeLog

    /// The mark of now, for a tier that knows it at once: work carries the mark of the moment it began. With nil, the
    /// default, work carries the mark that `purges(since:)` told last, at most once a second, and is more often taken for
    /// overtaken.
    var currentMark: PurgeMark? { get }

    /// What the tier holds and has done.
    func statistics() async throws(StoreError) -> TierStatistics
}

extension CacheTier {
    public var currentMark: PurgeMark? { nil }
    public func wasPurgedElsewhere(_ selection: PurgeSelection) -> Bool { false }
}

/// The name of a tier.
public struct TierName: Sendable, Hashable, CustomStringConvertible {
    /// As `Cache-Status` and reports show it.
    public let description: String

    public init(_ name: String) { description = name }

    /// Memory of this process.
    public static let memory = TierName("memory")
    /// The cache folder.
    public static let disk = TierName("disk")
    /// A service on another machine.
    public static let remote = TierName("remote")
}

/// What an entry is stored under.
public enum EntryKey: Sendable, Hashable {
    /// The records of a source: all selections that its `Vary` has led to, as one entry. Names are compared by their
    /// bytes: two that Swift's strings call equal, such as é in two spellings, may be two sources.
    case records(source: String)
    /// The body of an original, by the SHA-256 of its bytes.
    case original(String)
    /// A variant by its key, and the digest of the original it was made from.
    case variant(String, of: String)
}

/// How much of an entry a look-up wants.
public enum EntryPart: Sendable, Hashable {
    /// Whether it is there, and its metadata.
    case description
    /// The metadata and the body.
    case body
}

/// What a look-up found.
public enum FoundEntry: Sendable {
    /// The records of a source, newest first; never empty.
    case records([OriginalRecord])
    /// The body of an original; nil if only its description was wanted.
    case original(EntryBody?)
    /// A variant; without its bytes if only its description was wanted.
    case variant(VariantEntry, body: [UInt8]?)
}

/// A change to what a tier holds.
public struct EntryChange: Sendable {
    /// What changes.
    public enum Kind: Sendable {
        /// Stores a record in place of the one with the same source and selecting fields, and its body; nil leaves the
        /// body as it is.
        case original(OriginalRecord, body: EntryBody?)
        /// Replaces the fields and times of a record that is there; does nothing if it is not.
        case freshened(OriginalRecord)
        /// Removes the record of a source with these selecting fields. Its body may go with it; its variants stay.
        case removedRecord(source: String, selecting: [String: String?])
        /// Stores a variant in place of the one under the same key. `source` is where its original came from, so that
        /// a purge of that source finds the variant.
        case variant(VariantEntry, body: [UInt8], source: String?)
    }

    /// What changes.
    public var kind: Kind
    /// The tier's mark from when the work began whose result this is.
    public var mark: PurgeMark

    public init(_ kind: Kind, mark: PurgeMark) {
        self.kind = kind
        self.mark = mark
    }
}

/// A moment in a tier's history of purges. Its number means something to that tier only, and never decreases.
public struct PurgeMark: Sendable, Hashable, Comparable {
    public let rawValue: UInt64

    public init(_ rawValue: UInt64) { self.rawValue = rawValue }

    public static func < (left: PurgeMark, right: PurgeMark) -> Bool { left.rawValue < right.rawValue }
}

/// How much a purge removes.
public enum PurgeMode: String, Sendable, Hashable, CaseIterable {
    /// Everything, at once.
    case hard
    /// Nothing: records are made stale. Each is answered with once more while it is validated behind the answer, or
    /// validated first if its directives demand that (`no-cache`, `must-revalidate`, …).
    case soft
    /// Variants only, at once; originals stay as they are.
    case variantsOnly
}

/// What a purge removes: the records of these sources, their bodies unless another source's record names them, and all
/// variants of every digest these sources are known to have had.
public struct PurgeSelection: Sendable, Hashable {
    /// Names of sources.
    public var sources: Set<String> = []
    /// Further sources by prefix.
    public var matching: SourceSelection?
    /// Further originals that belong to these sources, although no record of the tier may say so.
    public var digests: Set<String> = []
    /// What to do with them.
    public var mode = PurgeMode.hard

    public init(
        sources: Set<String> = [], matching: SourceSelection? = nil, digests: Set<String> = [],
        mode: PurgeMode = .hard
    ) {
        self.sources = sources
        self.matching = matching
        self.digests = digests
        self.mode = mode
    }

    /// Removes nothing, and voids all work in flight, whatever its source: no source has this name.
    static let workInFlight = PurgeSelection(sources: [""])
}

/// What a purge removed.
public struct PurgeResult: Sendable, Hashable {
    /// Sources of which anything was stored.
    public var sources = 0
    /// Records removed; those made stale by a soft purge.
    public var records = 0
    /// Bodies of originals removed.
    public var originals = 0
    /// Variants removed.
    public var variants = 0
    /// Bytes of the bodies and variants removed.
    public var bytes = 0
    /// Every digest the sources are known to have had, by which other tiers remove their variants.
    public var digests: Set<String> = []
    /// Work begun at an earlier mark no longer stores anything of these sources.
    public var mark = PurgeMark(0)
    /// Tiers that failed or did not answer in time. They may still hold what was to be purged; this process no longer
    /// takes it from them.
    public var unconfirmed: [TierName] = []

    public init() {}
}

/// What was purged between two marks.
public struct PurgeLog: Sendable, Hashable {
    /// The later mark.
    public var mark: PurgeMark
    /// Sources and digests of originals; nil if they are no longer known or too many: treat everything as purged.
    public var names: Set<String>?
    /// Further sources by prefix; empty by default.
    public var selections: [SourceSelection]

    public init(mark: PurgeMark, names: Set<String>?, selections: [SourceSelection] = []) {
        self.mark = mark
        self.names = names
        self.selections = selections
    }

    /// Whether nothing was purged.
    var isEmpty: Bool { names?.isEmpty == true && selections.isEmpty }

    /// The number of names beyond which it is faster to empty memory than to search it.
    static let limit = 10_000
}

/// What a tier holds and has done. Kinds of entries without a budget of their own stay zero.
public struct TierStatistics: Sendable, Hashable {
    /// Bodies of originals.
    public var originals = StoreCounters()
    /// Variants.
    public var variants = StoreCounters()
    /// Records of originals.
    public var records = StoreCounters()
    /// Decoded pixels, which memory alone holds.
    package var pixels = StoreCounters()

    public init(
        originals: StoreCounters = StoreCounters(), variants: StoreCounters = StoreCounters(),
        records: StoreCounters = StoreCounters()
    ) {
        self.originals = originals
        self.variants = variants
        self.records = records
    }
}

/// A tier behind memory, and how far the pipeline relies on it.
public struct TierPlacement: Sendable {
    /// The tier.
    public var tier: any CacheTier
    /// How long a request waits for a look-up before it counts as a miss; default 250 ms.
    public var deadline = Duration.milliseconds(250)
    /// How long a store or a purge may take before it counts as failed; default 10 s.
    public var storeDeadline = Duration.seconds(10)
    /// Calls in progress beyond which the tier is skipped. A call that ignores the cancellation at its deadline counts
    /// until it returns. Default 64.
    public var calls = 64
    /// When a tier that keeps failing is skipped for a while; by default after 5 failures in a row, for 10 s.
    public var breaker: BreakerConfiguration
    /// Bytes that may wait to be stored; further changes are dropped and counted. Default 64 MB.
    public var queueBytes = 64 << 20

    public init(_ tier: any CacheTier) {
        self.tier = tier
        breaker = BreakerConfiguration()
        breaker.failures = 5
    }
}
