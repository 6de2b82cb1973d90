import HTTPCaching
import PipelineCaching
import Variants

/// Finds what is stored of a request's original and its variants, and decides whether the original may be used without
/// asking the origin.
package struct LookUpStage: Sendable {
    let tiers: Tiers
    let caching: CachingConfiguration
    /// Unix seconds.
    let now: @Sendable () -> Double

    /// Seconds by which a response may seem to come from the future before its age counts as unknown.
    package static let clockTolerance = 2.0

    /// - Parameters:
    ///   - again: a second look-up in the same request: another task or process may have stored more by now.
    ///   - isForReport: whether responses of which no variant can be made are of interest too.
    func callAsFunction(
        _ admitted: AdmittedRequest, again: Bool = false, isForReport: Bool = false
    ) async -> CacheFinding {
        if !admitted.transport.keepsRecords {
            return CacheFinding(verdict: .missing, marks: await tiers.currentMarks(), tier: .none)
        }
        let found = await tiers.records(of: admitted.source, again: again)
        var finding = finding(of: found, admitted, isForReport: isForReport)
        if finding.tier == .disk, finding.isStale, !admitted.transport.isLocal { tiers.folder?.store.noteStale() }
        if admitted.purpose == .original, let record = finding.record { await addBody(to: &finding, record, admitted) }
        return finding
    }

    /// What memory has of a picture without asking anything behind it; nil if it has no record.
    func inMemory(_ admitted: AdmittedRequest) -> CacheFinding? {
        guard admitted.transport.keepsRecords, let found = tiers.recordsInMemory(of: admitted.source) else {
            return nil
        }
        return finding(of: found, admitted, isForReport: false)
    }

    private func finding(
        of found: Tiers.RecordLookup, _ admitted: AdmittedRequest, isForReport: Bool
    ) -> CacheFinding {
        var finding = CacheFinding(
            records: found.records, verdict: .missing, marks: found.marks, tier: OriginalOutcome(found.tier))
        if admitted.transport.isLocal {
            // The fetch stage asks whether it is unchanged, which costs one fstat for a file.
            finding.record = found.records.first
            if finding.record != nil { finding.verdict = .validate }
            return finding
        }
        // A response reached through redirects does not satisfy a request for the redirect itself, and vice versa.
        finding.records.removeAll { admitted.followsRedirects ? $0.isRedirect : $0.finalURL != nil }
        if admitted.purpose == .image, !isForReport {
            finding.unusable = finding.records.filter(\.isUnusable)
            // If the origin may not be asked, the stored response tells why there is no image.
            let isAllThereIs = finding.unusable.count == finding.records.count
            if !finding.unusable.isEmpty, !isAllThereIs || admitted.policy != .cacheOnly {
                finding.records.removeAll(where: \.isUnusable)
            }
        }
        guard let record = Self.selected(among: finding.records, by: admitted.request.fields) else {
            finding.forward = finding.records.isEmpty ? .uriMiss : .varyMiss
            finding.verdict = withoutRecord(admitted)
            return finding
        }
        finding.record = record
        decide(&finding, record, admitted)
        return finding
    }

    /// The original that may be shown, stale or not, while the origin is asked for a better one.
    func shown(_ finding: CacheFinding) -> Original? {
        var shown = finding
        switch finding.verdict {
        case .reuseAndValidate: break
        case .validate:
            guard let record = finding.record, record.response.isOK else { return nil }
            let decision = Reuse.decision(
                stored: record.response, now: now(), policy: .cacheOnly, configuration: caching)
            guard decision == .fresh || decision == .stale else { return nil }
            // Of the future: its age is unknown.
            let isUnknown = record.response.responseTime > now() + Self.clockTolerance
            shown.verdict = .reuse(isStale: decision == .stale || isUnknown)
        case .reuse, .missing, .unavailable: return nil
        }
        return shown.reusable
    }

    /// The body of an original; nil if no tier has it.
    func body(of original: Original) async -> Original? {
        if original.body != nil { return original }
        return await tiers.originalBody(original.record.digest, of: original.record).map { original.with($0, from: $1) }
    }

    /// The same if memory has it, without suspending.
    func bodyInMemory(of original: Original) -> Original? {
        guard tiers.isMemoryCurrent else { return nil }
        return tiers.memory.originals.entryIfPresent(for: original.record.digest).map {
            original.with(.bytes($0.body), from: .memory)
        }
    }

    /// The stored variant of an original; nil if no tier has it.
    func variant(_ key: String, of original: Original, again: Bool = false) async -> Variant? {
        guard
            let (stored, tier) = await tiers.variant(
                key, of: original.record.digest, from: original.record.source, again: again)
        else { return nil }
        return Variant(stored.entry, stored.body, from: tier)
    }

    /// The same if memory has it, without suspending.
    func variantInMemory(_ key: String) -> Variant? {
        guard tiers.isMemoryCurrent, let found = tiers.memory.variants.entryIfPresent(for: key) else { return nil }
        return Variant(found.value, found.body, from: .memory)
    }

    /// Looks again before a fetch, because one that finished after the first look-up may have stored the answer to this
    /// request too; nil if it did not, or if the request wants the origin's own answer.
    func originalStoredMeanwhile(_ finding: CacheFinding, _ admitted: AdmittedRequest) async -> Original? {
        guard !admitted.transport.isLocal, mayUseStored(finding, admitted) else { return nil }
        if let digest = finding.missingBody {
            guard let (body, tier) = await tiers.originalBody(digest) else { return nil }
            let again = await self(admitted, again: true)
            guard let record = again.record, record.digest == digest else { return nil }
            let outcome = OriginalOutcome(tier)
            return Original(
                record: record, body: body, outcome: outcome, tier: outcome, mayStore: true, marks: again.marks)
        }
        let again = await self(admitted, again: true)
        switch again.verdict {
        case .reuse(isStale: false): return again.reusable
        case .reuse(isStale: true) where finding.record == nil: return again.reusable
        default: return nil
        }
    }

    /// Whether a response that others store in the meantime may answer.
    func mayUseStored(_ finding: CacheFinding, _ admitted: AdmittedRequest) -> Bool {
        let policy = admitted.policy
        return finding.missingBody != nil
            || (policy == .protocol || policy == .cacheElseLoad) && finding.forward != .request
    }

    /// The most recent of the records that a request with these fields selects (RFC 9111 §4.1).
    static func selected(among records: [OriginalRecord], by fields: [HeaderField]) -> OriginalRecord? {
        let current = latest(of: records)
        return Variation.select(among: current.map(\.response), requestFields: fields).map { current[$0] }
    }

    /// The records of a source that may answer.
    static func offered(_ records: [OriginalRecord], for purpose: AdmittedRequest.Purpose) -> [OriginalRecord] {
        latest(of: purpose == .image ? records.filter { !$0.isUnusable } : records)
    }

    /// Of a picture and the one that is to take its place, the one that the origin sent or confirmed last.
    private static func latest(of records: [OriginalRecord]) -> [OriginalRecord] {
        guard records.contains(where: \.isOnTrial) else { return records }
        return records.filter { record in
            !records.contains { other in
                let (mine, others) = (record.response.responseTime, other.response.responseTime)
                return other.isAlternative(to: record) && (others > mine || others == mine && other.isOnTrial)
            }
        }
    }

    private func decide(_ finding: inout CacheFinding, _ record: OriginalRecord, _ admitted: AdmittedRequest) {
        let stored = record.response
        let time = now()
        let policy = admitted.policy
        let directives = admitted.directives
        // Stored before the clock was set back: its age is unknown.
        let isOfTheFuture = policy == .protocol && stored.responseTime > time + Self.clockTolerance
        let isUsable = admitted.purpose == .original || stored.isOK
        finding.verdict = .validate
        switch Reuse.decision(
            stored: stored, now: time, policy: policy, configuration: caching, directives: directives)
        {
        case .fresh where !isOfTheFuture && (isUsable || hasDeclaredLifetime(stored)):
            finding.verdict = .reuse(isStale: false)
            return
        case .stale where isUsable:
            finding.verdict = .reuse(isStale: true)
            return
        case .staleWhileRevalidate where !isOfTheFuture && isUsable && stored.lifetimeLimit == nil:
            // The limit that redirects set is not exceeded: the window is granted by the last response alone.
            finding.verdict = .reuseAndValidate
            return
        case .gatewayTimeout:
            finding.verdict = .unavailable
        default:
            break
        }
        // Without the client's directives the response might have been fresh.
        let isAsked =
            directives != nil && !isOfTheFuture
            && Reuse.decision(stored: stored, now: time, policy: policy, configuration: caching) == .fresh
        finding.forward = isAsked || policy == .reload || policy == .revalidate ? .request : .stale
    }

    /// A stored error answers for a picture only if the origin or the configuration declares its lifetime.
    private func hasDeclaredLifetime(_ stored: StoredResponse) -> Bool {
        let basis = Freshness.lifetime(of: stored, configuration: caching).basis
        return basis != .heuristic && basis != .none
    }

    /// Adds the body of the selected record. If the body is gone, the record is treated as not stored.
    private func addBody(
        to finding: inout CacheFinding, _ record: OriginalRecord, _ admitted: AdmittedRequest
    ) async {
        if let (body, tier) = await tiers.originalBody(record.digest, of: record) {
            finding.body = body
            finding.tier = OriginalOutcome(tier)
            return
        }
        finding.record = nil
        finding.records.removeAll { $0.digest == record.digest }
        finding.verdict = withoutRecord(admitted)
        finding.forward = .miss
    }

    private func withoutRecord(_ admitted: AdmittedRequest) -> CacheFinding.Verdict {
        Reuse.decisionWithoutStored(policy: admitted.policy, directives: admitted.directives)
            == .gatewayTimeout ? .unavailable : .missing
    }
}
