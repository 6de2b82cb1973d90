import HTTPCaching
import PipelineCaching
import PipelineFetching
import Variants

/// A request that the policy allows, with its source identified and its masks and overlays read. The stages pass on a
/// single reference.
@dynamicMemberLookup
struct AdmittedRequest: Sendable {
    /// How the origin's response is used.
    enum Purpose: Sendable {
        /// A picture, which requires a 200. Bodies are read when needed.
        case image
        /// The raw response with its body, regardless of the status.
        case original
    }

    struct Parts: Sendable {
        @Boxed var request: ImageRequest
        /// The URL to fetch, including credentials. Its original spelling is kept if a source ID names the records.
        var url: SourceURL
        var transport: any Transport
        /// The name that records are stored under: the normalized URL, the source ID, `file:` and the path, or `bytes:`
        /// and the digest.
        var source: String
        /// Whether other URLs share this name because of the `hosts` setting, and may be answered differently.
        var isOneOfMany = false
        var masks: [String: NamedFile] = [:]
        /// The closure that receives the events of a load, or nil if the request has no `LoadTask`.
        var onEvent: LoadTask.EventHandler?
        /// Whether the load shows a stale picture first and then waits for the origin.
        var showsStale = false
        /// Called with the number of bytes received so far, for every request that shares this fetch.
        var onProgress: WorkReport?
        /// The policy for using stored responses.
        var policy: CachePolicy
        var began: ContinuousClock.Instant
        var purpose = Purpose.image
        /// The client's own conditions and range, forwarded if nothing is stored.
        var conditions: [HeaderField] = []
        /// The client's `Cache-Control` and `Pragma`, if they apply to stored responses.
        var directives: RequestDirectives?
        var followsRedirects = true
        var onInterim: InterimObserver?
        /// The method and the body of the request to the origin.
        var method = "GET"
        var body: [UInt8] = []
    }

    @Boxed private var parts: Parts

    init(_ parts: Parts) { _parts = Boxed(wrappedValue: parts) }

    /// The name of the source in messages, without credentials.
    var displayName: String { parts.request.source.name(at: parts.url) }

    /// Whether the request is for a variant rather than the original.
    var isForVariant: Bool { parts.purpose == .image && parts.request.isForVariant }

    /// Waits until the request's `delay` has passed, counted from the start of the request.
    func waitForDelay() async throws(PipelineError) {
        guard parts.request.delay > .zero else { return }
        do { try await Task.sleep(until: parts.began + parts.request.delay, clock: .continuous) } catch {
            throw .cancelled
        }
    }

    /// Reports progress of the fetch to the load.
    var progressReporter: WorkReport? {
        guard let onEvent = parts.onEvent else { return nil }
        return { onEvent(.progress(received: $0, expected: $1)) }
    }

    /// Reports the start of a render to the load.
    var renderingReporter: WorkReport? {
        guard let onEvent = parts.onEvent else { return nil }
        return { _, _ in onEvent(.rendering) }
    }

    /// Reports a stored picture to the load. The history ignores the event if the origin has been contacted.
    func reportCached(_ derived: DerivedVariant) -> DerivedVariant {
        parts.onEvent?(.cached(ImageResponse(derived.variant, of: derived.original, self)))
        return derived
    }

    subscript<Value>(dynamicMember path: WritableKeyPath<Parts, Value>) -> Value {
        @inline(__always) get { parts[keyPath: path] }
        @inline(__always) set { parts[keyPath: path] = newValue }
    }
}

/// The state of a request's original in the tiers, before the origin is contacted.
struct CacheFinding: Sendable {
    enum Verdict: Sendable {
        /// The record may be used without validation.
        case reuse(isStale: Bool)
        /// The record is stale and may be used while it is validated in the background.
        case reuseAndValidate
        /// The record exists, but the origin must confirm it.
        case validate
        /// There is no record, so the original must be fetched.
        case missing
        /// The original is local (`Transport.isLocal`). Its transport says whether the record, if there is one, still
        /// describes it.
        case local
        /// The bytes came with the request. Nothing about them is stored.
        case given
        /// No record can be used, and the request forbids contacting the origin (`only-if-cached`, RFC 9111 §5.2.1.7).
        case unavailable
    }
    /// All records of the source, for any request fields.
    var records: [OriginalRecord] = []
    /// Further records that cannot be rendered, if the request is for a picture. Even if they are fresh, the origin is
    /// contacted. Their validators are not sent, because a truncated body has the validators of the complete one.
    var unusable: [OriginalRecord] = []
    /// The record that this request selects.
    var record: OriginalRecord?
    /// The body of `record`, if the request is for the raw response.
    var body: EntryBody?
    var verdict: Verdict
    /// The reason for contacting the origin, if it is contacted.
    var forward: CacheHandling.Forward?
    /// The purges known at the time of the look-up. Work that began before a purge is not stored after it.
    var marks: Tiers.Marks
    var tier: ImageResponse.Outcome?
    /// The digest of a required body that was evicted although its record was kept. The body is available only from the
    /// origin.
    var missingBody: String?

    /// Whether there is a record, even if its body was evicted.
    var isStored: Bool { record != nil || missingBody != nil }

    /// Whether the record is stale, even if it may be used.
    var isStale: Bool {
        switch verdict {
        case .reuse(let isStale): isStale
        case .reuseAndValidate: true
        case .validate, .unavailable: forward == .stale
        case .missing, .local, .given: false
        }
    }

    /// Whether the selected record has a validator.
    var hasValidator: Bool { record.map { Validation.hasValidator($0.response) } ?? false }

    /// The stored original, if it may be used without first contacting the origin.
    var reusable: Original? {
        guard let record else { return nil }
        let isStale: Bool
        switch verdict {
        case .reuse(let stale): isStale = stale
        case .reuseAndValidate: isStale = true
        case .validate, .missing, .unavailable, .local, .given: return nil
        }
        // For a raw response, report the tier that the body came from. For an image, report how the original was
        // obtained. An outcome of nil means that the record was fresh.
        let outcome = body == nil ? nil : tier
        return Original(
            record: record, body: body, outcome: isStale ? .stale : outcome, tier: tier, isStale: isStale,
            mayStore: true, marks: marks)
    }
}

extension CacheFinding {
    /// Whether the original is available without contacting an origin.
    var isLocal: Bool {
        switch verdict {
        case .local, .given: true
        default: false
        }
    }

    /// The stored original, for use after its transport has found it unchanged.
    var unchanged: Original? {
        record.map {
            var original = Original(record: $0, outcome: nil, mayStore: true, marks: marks)
            original.isLocal = isLocal
            return original
        }
    }
}

/// An original: the record, and the body if it was needed.
struct Original: Sendable {
    @Boxed var record: OriginalRecord
    var body: EntryBody?
    var outcome: ImageResponse.Outcome?
    /// The tier that a stored body came from.
    var tier: ImageResponse.Outcome?
    var isStale = false
    /// Whether the original, and therefore its variants, may be stored.
    var mayStore: Bool
    /// The fields as the origin sent them, including fields that may not be stored. The value is nil unless this
    /// request caused the fetch.
    var received: [HeaderField]?
    /// The fields of the request that caused the fetch.
    var requestFields: [HeaderField] = []
    /// The reason why the original may not be stored, as a single word.
    var refusal: String?
    var marks: Tiers.Marks
    var isCollapsed = false
    var fetchMilliseconds = 0.0
    /// The reason for contacting the origin, and the status of its response if it differs from the record's.
    var forward: CacheHandling.Forward?
    var forwardStatus: Int?
    /// The transport's description of an error, in addition to the status.
    var problem: String?
    /// The URL that the origin refused, if other URLs share its name. The refusal does not imply that the others fail.
    var refusedURL: String?

    /// Whether the original came from a local transport.
    var isLocal = false

    /// The original without its body, which stays in its tier.
    var withoutBody: Original {
        var original = self
        original.body = nil
        return original
    }

    /// Returns the original with a body from a tier.
    func with(_ body: EntryBody, from tier: TierName) -> Original {
        var original = self
        original.body = body
        original.tier = ImageResponse.Outcome(tier)
        original.outcome = original.outcome ?? original.tier
        return original
    }

    /// Marks the original as not to be stored, and records the reason.
    mutating func refuse(_ reason: String) {
        mayStore = false
        refusal = reason
    }
}

/// The result of a request to the origin or of reading a file, and the resulting change to the tiers.
struct FetchedOriginal: Sendable {
    enum Change: Sendable {
        /// Stores the original. If the caller's hook refuses it, removes the record that it replaces.
        case store(replacing: OriginalRecord?)
        /// Stores the original, freshened by a 304, in place of the record that was validated. Also freshens other
        /// records if the 304 identifies them by the same strong entity tag.
        case freshen(OriginalRecord, others: [OriginalRecord], isSelected: Bool)
        /// Removes a record that the response supersedes although it may not be stored itself.
        case forget(OriginalRecord)
    }
    var original: Original
    var change: Change?
}

/// A rendered or stored variant, or the original itself if the request has no recipe.
struct Variant: Sendable {
    var bytes: [UInt8]
    var entry: VariantEntry?
    var format: ImageFormat
    var width: Int
    var height: Int
    var digest: String
    var outcome: ImageResponse.Outcome
    /// Whether pixels are missing (`RenderLimits.acceptsDamaged`). A damaged variant has no entry and is not stored.
    var isDamaged = false
    var isCollapsed = false
    /// Whether a second pass may replace the variant, unless one has already finished.
    var isRefinable = false
    /// The CPU time of the render in seconds.
    var secondsOfCPU = 0.0
    var timings = Timings()

    /// See `ImageResponse.pass`.
    var pass: Int? { entry == nil ? nil : entry?.firstLength != nil ? 2 : isRefinable ? 1 : nil }
}

extension Variant {
    /// Creates a variant from a stored entry. Returns nil if the format belongs to a later version.
    init?(_ entry: VariantEntry, _ body: [UInt8], from tier: TierName) {
        guard let format = entry.format else { return nil }
        self.init(
            bytes: body, entry: entry, format: format, width: entry.width, height: entry.height, digest: entry.digest,
            outcome: ImageResponse.Outcome(tier))
    }
}

/// A variant, and the original that it was rendered from. If the body of the original was needed, its tier is known.
struct DerivedVariant: Sendable {
    var variant: Variant
    var original: Original
}
