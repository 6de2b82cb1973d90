import HTTPCaching
import PipelineCaching
import PipelineFetching
import Variants

/// A request that policy admits, with its source identified and its masks read. All stages pass on one reference.
@dynamicMemberLookup
struct AdmittedRequest: Sendable {
    /// What the origin's response is wanted for.
    enum Purpose: Sendable {
        /// A picture, which is made from a 200 only. Bodies are read when they are needed.
        case image
        /// The raw response, whatever its status, with its body.
        case original
    }

    struct Parts: Sendable {
        @Boxed var request: ImageRequest
        /// What the transport fetches: credentials included, and as it is written where a caller's ID names the records.
        var url: SourceURL
        var transport: any Transport
        /// The name records are stored under: the normalised URL, the caller's ID, `file:` + path, `bytes:` + digest.
        var source: String
        /// The source's name in messages, without credentials.
        var displayName: String
        /// Whether other URLs have the same name, by the setting `hosts`, and may be answered otherwise.
        var isOneOfMany = false
        var masks: [String: NamedFile] = [:]
        /// Hears what happens; nil if there is no handle for this request.
        var tell: LoadTask.Tell?
        /// Whether a stale picture has been shown, so that the origin is asked before the end.
        var showsStale = false
        /// Hears how much of the body has arrived: all that wait for this fetch.
        var onProgress: WorkReport?
        /// How far stored responses are trusted.
        var policy: CachePolicy
        var began: ContinuousClock.Instant
        var purpose = Purpose.image
        /// The client's conditions and ranges, forwarded if nothing is stored.
        var conditions: [HeaderField] = []
        /// The client's `Cache-Control` and `Pragma`, if they apply to stored responses.
        var directives: RequestDirectives?
        var followsRedirects = true
        var onInterim: InterimObserver?
        /// `GET`, or a method that may change state; `body` is sent with it.
        var method = "GET"
        var body: [UInt8] = []
    }

    @Boxed private var parts: Parts

    init(_ parts: Parts) { _parts = Boxed(wrappedValue: parts) }

    /// Whether a variant is wanted, rather than the original itself.
    var isForVariant: Bool { parts.purpose == .image && parts.request.recipe != nil }

    /// Waits until the request's `delay` since its beginning is over.
    func waitForDelay() async throws(PipelineError) {
        guard parts.request.delay > .zero else { return }
        do { try await Task.sleep(until: parts.began + parts.request.delay, clock: .continuous) } catch {
            throw .cancelled
        }
    }

    /// Passes on how much of the body has arrived.
    var tellsProgress: WorkReport? {
        guard let tell = parts.tell else { return nil }
        return { tell(.progress(received: $0, expected: $1)) }
    }

    /// Says that a render begins.
    var tellsRendering: WorkReport? {
        guard let tell = parts.tell else { return nil }
        return { _, _ in tell(.rendering) }
    }

    /// Says that there is a stored picture, unless the origin was asked.
    func shows(_ derived: DerivedVariant) -> DerivedVariant {
        parts.tell?(.cached(ImageResponse(derived.variant, of: derived.original, self)))
        return derived
    }

    subscript<Value>(dynamicMember path: WritableKeyPath<Parts, Value>) -> Value {
        @inline(__always) get { parts[keyPath: path] }
        @inline(__always) set { parts[keyPath: path] = newValue }
    }
}

/// What the tiers know about a request's original before the origin is asked.
struct CacheFinding: Sendable {
    enum Verdict: Sendable {
        /// The record may be used as it is.
        case reuse(isStale: Bool)
        /// The record is stale and may be used, while the origin is asked in the background.
        case reuseAndValidate
        /// The record is there, but the origin must confirm it.
        case validate
        /// No record: the original has to be fetched.
        case missing
        /// No record can be used, and the request forbids asking the origin (`only-if-cached`, RFC 9111 §5.2.1.7).
        case unavailable
    }
    /// All records of the source, whatever request fields they were stored for.
    var records: [OriginalRecord] = []
    /// Further records, of which no variant can be made, if one is wanted. However fresh they are, the origin is asked, and
    /// without their validators: a body that broke off on the way has those of the whole.
    var unusable: [OriginalRecord] = []
    /// The record that this request selects.
    var record: OriginalRecord?
    /// The body of `record`, if the raw response is wanted.
    var body: EntryBody?
    var verdict: Verdict
    /// Why the origin is to be asked, if it is.
    var forward: CacheHandling.Forward?
    /// The purges known at look-up; work begun before a purge is not stored after it.
    var marks: Tiers.Marks
    var tier: OriginalOutcome
    /// The digest of a wanted body that was evicted although its record stayed: only the origin has it.
    var missingBody: String?

    /// Whether the record is no longer fresh, even if it is used nevertheless.
    var isStale: Bool {
        switch verdict {
        case .reuse(let isStale): isStale
        case .reuseAndValidate: true
        case .validate, .unavailable: forward == .stale
        case .missing: false
        }
    }

    /// The stored original, if it may be used without asking the origin first.
    var reusable: Original? {
        guard let record else { return nil }
        let isStale: Bool
        switch verdict {
        case .reuse(let stale): isStale = stale
        case .reuseAndValidate: isStale = true
        case .validate, .missing, .unavailable: return nil
        }
        // For a raw response report the tier it came from; for an image, whether the origin was contacted.
        let outcome: OriginalOutcome = body == nil ? .none : tier
        return Original(
            record: record, body: body, outcome: isStale ? .stale : outcome, tier: tier, isStale: isStale,
            mayStore: true, marks: marks)
    }
}

/// An original: its record, and its body if that had to be obtained.
struct Original: Sendable {
    @Boxed var record: OriginalRecord
    var body: EntryBody?
    var outcome: OriginalOutcome
    /// The tier that a stored body came from.
    var tier = OriginalOutcome.none
    var isStale = false
    /// Whether it, and so its variants, may be stored.
    var mayStore: Bool
    /// The fields as the origin sent them, for the request that caused the fetch: some of them may not be stored.
    var received: [HeaderField]?
    /// The fields of the request that caused the fetch.
    var requestFields: [HeaderField] = []
    /// Why it may not be stored, in one word.
    var refusal: String?
    var marks: Tiers.Marks
    var isCollapsed = false
    var fetchMilliseconds = 0.0
    /// Why the origin was asked, and the status it answered with if that is not the record's.
    var forward: CacheHandling.Forward?
    var forwardStatus: Int?
    /// What the transport knows of an error that the status does not say.
    var problem: String?
    /// The URL that was refused, if others have the same name: what it got says nothing of them.
    var refusedURL: String?

    /// The same without its body, which stays as it is where the record is stored.
    var withoutBody: Original {
        var original = self
        original.body = nil
        return original
    }

    /// The same with its body, which a tier had.
    func with(_ body: EntryBody, from tier: TierName) -> Original {
        var original = self
        original.body = body
        original.tier = OriginalOutcome(tier)
        if original.outcome == .none { original.outcome = original.tier }
        return original
    }

    /// Records why the original is not stored.
    mutating func refuse(_ reason: String) {
        mayStore = false
        refusal = reason
    }
}

/// What the origin, or a file, gave, and what that changes in the tiers.
struct FetchedOriginal: Sendable {
    enum Change: Sendable {
        /// Stores the original. If the caller's hook refuses it, the record it replaces is removed.
        case store(replacing: OriginalRecord?)
        /// Stores the original, which a 304 has freshened, in place of the record it was made from, and freshens others
        /// that the 304 identifies by the same strong entity tag.
        case freshen(OriginalRecord, others: [OriginalRecord], isSelected: Bool)
        /// Removes a record that the response supersedes although it may not be stored itself.
        case forget(OriginalRecord)
    }
    var original: Original
    var change: Change?
}

/// A rendered or stored variant, or the original itself if no recipe was given.
struct Variant: Sendable {
    var bytes: [UInt8]
    var entry: VariantEntry?
    var format: ImageFormat
    var width: Int
    var height: Int
    var digest: String
    var outcome: Outcome
    /// Whether pixels are missing (`DamagedOriginals.accept`). Such a variant has no entry, so it is not stored.
    var isDamaged = false
    var isCollapsed = false
    var timings = Timings()
}

extension Variant {
    /// A stored one; nil if it is in a format of a later version.
    init?(_ entry: VariantEntry, _ body: [UInt8], from tier: TierName) {
        guard let format = entry.format else { return nil }
        self.init(
            bytes: body, entry: entry, format: format, width: entry.width, height: entry.height, digest: entry.digest,
            outcome: Outcome(tier))
    }
}

/// A variant, and the original it was made from as it was used: with where its body came from, if it was needed.
struct DerivedVariant: Sendable {
    var variant: Variant
    var original: Original
}
