public import HTTPCaching
import PipelineCaching
import PipelineSupport
import Variants

/// Describes an original that is about to be stored. `PipelineConfiguration.willStore` receives it, and may change its
/// fields and its lifetime, or refuse to store it.
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.willStore = { candidate in
///     if candidate.source.hasPrefix("https://previews.example/") { return false }
///     candidate.lifetime = .seconds(86_400)
///     return true
/// }
/// ```
public struct StoredOriginalCandidate: Sendable {
    /// The name that the response is stored under: the normalized URL, or `id:` and the caller's source ID.
    public let source: String
    /// The status, fields and times to store. Changes made by the hook apply to later requests. The current request
    /// receives the response as the origin sent it.
    public var response: StoredResponse
    /// The SHA-256 of the body, in hexadecimal.
    public let digest: String
    /// The length of the body in bytes.
    public let length: Int
    /// Whether this is a stored response that a 304 has just freshened.
    public let isFreshened: Bool
    /// The freshness lifetime, counted from when the origin generated the response. It overrides the header fields of
    /// the response. If nil, the header fields determine the lifetime. Redirects may still shorten it.
    public var lifetime: Duration? {
        get { response.assignedLifetime.map { .seconds($0) } }
        set { response.assignedLifetime = newValue?.inSeconds }
    }
}

/// Stores fetched originals and rendered variants. Writes are queued, so that the response does not wait for them.
struct KeepStage: Sendable {
    let tiers: Tiers
    let caching: CachingConfiguration
    let willStore: (@Sendable (inout StoredOriginalCandidate) -> Bool)?

    /// Applies the changes to the tiers that a fetch requires.
    ///
    /// - Parameter known: the records found for the source by the look-up, in case memory has evicted them.
    /// - Returns: the original, marked as not to be stored if the caller's hook refuses it.
    func callAsFunction(
        _ fetched: FetchedOriginal, of admitted: AdmittedRequest, known: [OriginalRecord] = []
    ) -> Original {
        var original = fetched.original
        switch fetched.change {
        case nil:
            break
        case .forget(let record)?:
            tiers.forget(record)
        case .store(let replaced)?:
            // Local originals are not copied into the cache. The hook is called only for responses from origins.
            if original.isLocal {
                original.body = nil
                store(original, as: original.record, admitted, known)
            } else if let kept = amended(original.record, isFreshened: false) {
                store(original, as: kept, admitted, known)
            } else {
                original.refuse("vetoed")
                if let replaced { tiers.forget(replaced) }
            }
            original.body = fetched.original.body
        case .freshen(let record, let others, let isSelected)?:
            if let kept = amended(original.record, isFreshened: true) {
                freshen(record, with: kept, original, admitted, known, isSelected: isSelected)
                freshen(others, as: kept, original, admitted, known)
            } else {
                original.refuse("vetoed")
            }
        }
        return original
    }

    /// Replaces the old picture with the provisional one after a variant of it has rendered.
    func promoted(_ original: Original, _ admitted: AdmittedRequest) async -> Original {
        guard original.record.isProvisional, var record = await stored(original) else { return original }
        let former = record
        record.isProvisional = false
        store(original.withoutBody, as: record, admitted, [former])
        var promoted = original
        promoted.record.isProvisional = false
        return promoted
    }

    /// Records that an original cannot be decoded. Raw responses may still use it.
    func markUndecodable(_ original: Original, _ admitted: AdmittedRequest) async {
        guard var record = await stored(original) else { return }
        record.header = nil
        store(original.withoutBody, as: record, admitted, [])
    }

    /// Returns the stored record of an original, including changes made by the `willStore` hook, or nil if it is not
    /// stored.
    private func stored(_ original: Original) async -> OriginalRecord? {
        guard original.mayStore else { return nil }
        return await tiers.records(of: original.record.source).records.first {
            $0.digest == original.record.digest && $0.selection == original.record.selection
        }
    }

    /// Stores a rendered variant, if its original may be stored.
    func callAsFunction(_ rendered: Variant, of original: Original, _ admitted: AdmittedRequest) -> Variant {
        guard original.mayStore, let entry = rendered.entry else { return rendered }
        var variant = rendered
        let began = ContinuousClock.now
        tiers.store(
            entry, body: variant.bytes, of: admitted.source, storage: admitted.request.storage, marks: original.marks)
        variant.timings.store = began.duration(to: .now)
        return variant
    }

    /// Returns the record with the changes made by the `willStore` hook, or nil if the hook refuses to store it.
    private func amended(_ record: OriginalRecord, isFreshened: Bool) -> OriginalRecord? {
        guard let willStore else { return record }
        var candidate = StoredOriginalCandidate(
            source: record.source, response: record.response, digest: record.digest, length: record.length,
            isFreshened: isFreshened)
        guard willStore(&candidate) else { return nil }
        var amended = record
        amended.response = candidate.response
        return amended
    }

    private func store(
        _ original: Original, as record: OriginalRecord, _ admitted: AdmittedRequest, _ known: [OriginalRecord]
    ) {
        tiers.store(
            record, body: original.body, storage: admitted.request.storage, marks: original.marks, known: known)
        // The provisional response with the same selecting fields is older.
        for other in known where other.isProvisional && !record.isProvisional && other.isAlternative(to: record) {
            tiers.forget(other)
        }
    }

    /// Stores a freshened record in place of the record that was validated, or in addition to it if the selecting
    /// fields differ.
    private func freshen(
        _ record: OriginalRecord, with kept: OriginalRecord, _ original: Original, _ admitted: AdmittedRequest,
        _ known: [OriginalRecord], isSelected: Bool
    ) {
        if kept.selection == record.selection {
            tiers.freshen(kept, storage: admitted.request.storage, marks: original.marks, known: known)
            return
        }
        store(original.withoutBody, as: kept, admitted, known)
        // The origin now varies on other fields.
        if isSelected { tiers.forget(record) }
    }

    /// Freshens every other record with the same strong entity tag (RFC 9111 §4.3.4).
    private func freshen(
        _ others: [OriginalRecord], as kept: OriginalRecord, _ original: Original, _ admitted: AdmittedRequest,
        _ known: [OriginalRecord]
    ) {
        for other in others where other.selection != kept.selection {
            var new = other
            new.response.assignedLifetime = kept.response.assignedLifetime
            guard Storability.refusal(response: new.response, requestFields: [], configuration: caching) == nil
            else { continue }
            tiers.freshen(new, storage: admitted.request.storage, marks: original.marks, known: known)
        }
    }
}
