import Variants

/// A request that policy lets in: its source identified, its masks at hand. One reference, handed on by all stages.
@dynamicMemberLookup
struct AdmittedRequest: Sendable {
    enum Origin: Sendable {
        case remote(SourceURL)
        /// Absolute path.
        case file(String)
        case bytes([UInt8])
    }
    /// What an origin's answer is wanted for.
    enum Purpose: Sendable {
        /// A picture: made from a 200 alone. Bodies are read when they are needed.
        case image
        /// The response itself, whatever its status, with its body.
        case original
    }

    struct Parts: Sendable {
        @Boxed var request: ImageRequest
        var origin: Origin
        /// What records are kept under: the normalised URL, the caller's ID, `file:` + path, or `bytes:` + digest.
        var source: String
        /// The source for messages, credentials taken out.
        var displayName: String
        var masks: [String: NamedFile]
        var events: @Sendable (LoadEvent) -> Void
        var began: ContinuousClock.Instant
        var purpose = Purpose.image
        /// Conditions and ranges of the client, sent on where nothing is stored.
        var conditions: [HeaderField] = []
        /// What `Cache-Control` and `Pragma` of the client say, where they act on what is stored.
        var directives: RequestDirectives?
        var followsRedirects = true
        var onInterim: InterimObserver?
        /// `GET`, or a method that may change things, and what is sent with it.
        var method = "GET"
        var body: [UInt8] = []
    }

    @Boxed private var parts: Parts

    init(_ parts: Parts) { _parts = Boxed(wrappedValue: parts) }

    subscript<Value>(dynamicMember path: WritableKeyPath<Parts, Value>) -> Value {
        @inline(__always) get { parts[keyPath: path] }
        @inline(__always) set { parts[keyPath: path] = newValue }
    }
}

/// What the caches know of a request's original before anybody is asked.
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
        /// Nothing that will do, and the request forbids asking (`only-if-cached`, RFC 9111 §5.2.1.7).
        case unavailable
    }
    var admitted: AdmittedRequest
    /// Everything stored of the source, whatever request fields it was stored for.
    var records: [OriginalRecord] = []
    /// What this request selects of it.
    var record: OriginalRecord?
    /// The body of `record`, where the response itself is wanted.
    var body: EntryBody?
    var verdict: Verdict
    /// Why the origin is to be asked, if it is.
    var forward: CacheHandling.Forward?
    /// The purge generation at look-up; what was begun before a purge is not stored after it.
    var generation: CacheTiers.Generation
    var tier: OriginalOutcome
    /// The digest whose record is there while its body, which is wanted, is gone: only the origin has it.
    var missingBody: Digest?

    /// Whether the record is no longer fresh, used all the same or not.
    var isStale: Bool {
        switch verdict {
        case .reuse(let isStale): isStale
        case .reuseAndValidate: true
        case .validate, .unavailable: forward == .stale
        case .missing: false
        }
    }
}

/// An original: its record, and its body where that had to be obtained.
struct Original: Sendable {
    var admitted: AdmittedRequest
    @Boxed var record: OriginalRecord
    var body: EntryBody?
    var outcome: OriginalOutcome
    /// The tier that a stored body came from.
    var tier = OriginalOutcome.none
    var isStale = false
    /// Whether it, and so its variants, may be stored.
    var mayStore: Bool
    /// The fields as the origin sent them, for the request that it answered alone: not all of them may be stored.
    var received: [HeaderField]?
    /// Why it may not be stored, in a word.
    var refusal: String?
    var generation: CacheTiers.Generation
    var isCollapsed = false
    var fetchMilliseconds = 0.0
    /// Why the origin was asked, and the status it answered with where that is not the record's.
    var forward: CacheHandling.Forward?
    var forwardStatus: Int?
}

/// A rendered or stored variant, or the original itself where no recipe was given.
struct Variant: Sendable {
    var original: Original
    var bytes: [UInt8]
    var entry: VariantEntry?
    var format: ImageFormat
    var width: Int
    var height: Int
    var digest: Digest
    var outcome: Outcome
    var isCollapsed = false
    var timings = Timings()
}
