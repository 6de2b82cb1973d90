public import HTTPCaching
public import PipelineCaching
import Variants

/// An origin's response about to be stored, as passed to `PipelineConfiguration.willStore`.
public struct StoredOriginalCandidate: Sendable {
    /// The normalised URL or the caller's source ID it is stored under.
    public let source: String
    /// Status, fields and times as they will be stored. Changes made by the hook apply to later requests; the current
    /// request gets the response as the origin sent it.
    public var response: StoredResponse
    /// SHA-256 of the body.
    public let digest: Digest
    /// Bytes of the body.
    public let length: Int
    /// Whether this is a stored response that a 304 has just freshened.
    public let isFreshened: Bool
    /// Seconds of freshness from when the origin made the response, in place of what its fields say; nil uses the
    /// fields. Redirects may still shorten it.
    public var lifetime: Double? {
        get { response.assignedLifetime }
        set { response.assignedLifetime = newValue }
    }
}

/// Stores originals and variants in the tiers, without delaying the answer.
struct StoreStage: Sendable {
    let tiers: CacheTiers
    let willStore: (@Sendable (inout StoredOriginalCandidate) -> Bool)?

    /// The record as amended by the configuration's hook; nil if the hook refuses to store it.
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

    /// Stores a record and its body, if there is one to store; the body of a local file is not copied.
    ///
    /// - Parameters:
    ///   - record: the record to store, as amended by the hook.
    ///   - known: the records stored for the source before, in case memory has evicted them.
    func callAsFunction(_ original: Original, as record: OriginalRecord, known: [OriginalRecord] = []) {
        var body = original.body
        if case .file = original.admitted.origin { body = nil }
        tiers.store(
            record, body: body, storage: original.admitted.request.storage, generation: original.generation,
            known: known)
    }

    /// Stores a 304's new fields and times for a record that is stored with its body.
    func freshen(_ record: OriginalRecord, of original: Original, known: [OriginalRecord]) {
        tiers.freshen(
            record, storage: original.admitted.request.storage, generation: original.generation, known: known)
    }

    /// Stores a rendered variant, if its original may be stored.
    func callAsFunction(_ variant: Variant) {
        guard variant.original.mayStore, let entry = variant.entry, variant.outcome == .rendered else { return }
        tiers.store(
            entry, body: variant.bytes, of: variant.original.admitted.source,
            storage: variant.original.admitted.request.storage,
            generation: variant.original.generation)
    }
}
