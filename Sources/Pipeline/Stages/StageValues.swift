import Variants

/// A request that policy lets in: its source identified, its masks at hand.
struct AdmittedRequest: Sendable {
    enum Origin: Sendable {
        case remote(SourceURL)
        /// Absolute path.
        case file(String)
        case bytes([UInt8])
    }
    var request: ImageRequest
    var origin: Origin
    /// What records are kept under: the normalised URL, the caller's ID, `file:` + path, or `bytes:` + digest.
    var source: String
    /// The source for messages, credentials taken out.
    var displayName: String
    var masks: [String: NamedFile]
    var events: @Sendable (LoadEvent) -> Void
    var began: ContinuousClock.Instant
}

/// What the caches know of a request's original before anybody is asked.
struct CacheFinding: Sendable {
    enum Verdict: Sendable {
        /// The record may be used as it is.
        case reuse(isStale: Bool)
        /// The record is there, but the origin must confirm it.
        case validate
        /// No record: the original has to be fetched.
        case missing
    }
    var admitted: AdmittedRequest
    var record: OriginalRecord?
    var verdict: Verdict
    /// The purge generation at look-up; what was begun before a purge is not stored after it.
    var generation: CacheTiers.Generation
    var tier: OriginalOutcome
    /// The record is there, but its body is wanted and gone: only the origin has it.
    var needsBody = false
}

/// An original: its record, and its body where that had to be obtained.
struct Original: Sendable {
    var admitted: AdmittedRequest
    var record: OriginalRecord
    var body: [UInt8]?
    var outcome: OriginalOutcome
    var isStale = false
    /// Whether it, and so its variants, may be stored.
    var mayStore: Bool
    var generation: CacheTiers.Generation
    var isCollapsed = false
    var fetchMilliseconds = 0.0
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
