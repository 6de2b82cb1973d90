import Variants

/// What is about to be kept of an origin's answer, shown to `PipelineConfiguration.willStore`.
public struct StoredOriginalCandidate: Sendable {
    /// The normalised URL or the caller's source ID it is kept under.
    public let source: String
    /// Status, fields and times as they will be stored. What a hook changes here is what later requests see; the request
    /// at hand gets the answer as the origin sent it.
    public var response: StoredResponse
    /// SHA-256 of the body.
    public let digest: Digest
    /// Bytes of the body.
    public let length: Int
    /// Whether this is a stored response that a 304 has just freshened.
    public let isFreshened: Bool
    /// Seconds of freshness from when the origin made the response, in place of what its fields say; nil leaves it to
    /// them. Redirects may still shorten it.
    public var lifetime: Double? {
        get { response.assignedLifetime }
        set { response.assignedLifetime = newValue }
    }
}

/// Puts originals and variants into the tiers, behind the answer.
struct StoreStage: Sendable {
    let tiers: CacheTiers
    let willStore: (@Sendable (inout StoredOriginalCandidate) -> Bool)?

    /// The record as the configuration's hook will have it stored; nil when it is not to be.
    func amended(_ record: OriginalRecord, isFreshened: Bool) -> OriginalRecord? {
        guard let willStore else { return record }
        var candidate = StoredOriginalCandidate(
            source: record.source, response: record.response, digest: record.digest, length: record.length,
            isFreshened: isFreshened)
        guard willStore(&candidate) else { return nil }
        var amended = record
        amended.response = candidate.response
        return amended
    }

    /// A record and its body, if there is one to store; a file's body stays where it is.
    ///
    /// - Parameters:
    ///   - record: as it is to be stored, which a hook may have amended.
    ///   - known: what was stored of the source before, in case memory has lost it.
    func callAsFunction(_ original: Original, as record: OriginalRecord, known: [OriginalRecord] = []) {
        var body = original.body
        if case .file = original.admitted.origin { body = nil }
        tiers.store(
            record, body: body, storage: original.admitted.request.storage, generation: original.generation,
            known: known)
    }

    /// A 304's new fields and times for a record that is stored with its body.
    func freshen(_ record: OriginalRecord, of original: Original, known: [OriginalRecord]) {
        tiers.freshen(
            record, storage: original.admitted.request.storage, generation: original.generation, known: known)
    }

    /// A rendered variant, stored exactly where its original may be.
    func callAsFunction(_ variant: Variant) {
        guard variant.original.mayStore, let entry = variant.entry, variant.outcome == .rendered else { return }
        tiers.store(
            entry, body: variant.bytes, of: variant.original.admitted.source,
            storage: variant.original.admitted.request.storage,
            generation: variant.original.generation)
    }
}
