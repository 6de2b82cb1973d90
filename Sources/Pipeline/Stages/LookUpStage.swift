import HTTPCaching
import PipelineCaching
import Variants

/// Looks up the original and the variants of a request, and decides whether the original may be used without contacting
/// the origin.
package struct LookUpStage: Sendable {
    let tiers: Tiers
    let caching: CachingConfiguration
    /// Returns the current time in Unix seconds.
    let now: @Sendable () -> Double

    /// The tolerance for responses that appear to come from the future, in seconds. Beyond it, the age of a response is
    /// unknown.
    package static let clockTolerance = 2.0

    /// - Parameters:
    ///   - again: whether this is the second look-up for a request. Another task or process may have stored a response
    ///     since the first.
    ///   - isForReport: whether to include responses that cannot be rendered.
    func callAsFunction(
        _ admitted: AdmittedRequest, again: Bool = false, isForReport: Bool = false
    ) async -> CacheFinding {
        if !admitted.transport.keepsRecords {
            return CacheFinding(verdict: .given, marks: await tiers.currentMarks(), tier: nil)
        }
        let found = await tiers.records(of: admitted.source, again: again)
        var finding = finding(of: found, admitted, isForReport: isForReport)
        if finding.tier == .disk, finding.isStale { tiers.folder?.store.noteStale() }
        if admitted.purpose == .original, let record = finding.record { await addBody(to: &finding, record, admitted) }
        return finding
    }

    /// Returns the state of a picture in memory, without querying other tiers. Returns nil if memory has no record.
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
            records: found.records, verdict: .missing, marks: found.marks,
            tier: found.tier.map { ImageResponse.Outcome($0) })
        if admitted.transport.isLocal {
            // The fetch stage checks whether the source is unchanged, which costs one fstat for a file.
            finding.record = found.records.first
            finding.verdict = .local
            return finding
        }
        // A response reached through redirects does not satisfy a request for the redirect itself, and vice versa.
        finding.records.removeAll { admitted.followsRedirects ? $0.isRedirect : $0.finalURL != nil }
        if admitted.purpose == .image, !isForReport {
            finding.unusable = finding.records.filter(\.isUnusable)
            // If the origin may not be contacted, the stored response explains why no image is available.
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

    /// Returns the original that may be shown, fresh or stale, while the origin is contacted for a newer one.
    func displayableOriginal(_ finding: CacheFinding) -> Original? {
        var shown = finding
        switch finding.verdict {
        case .reuseAndValidate: break
        case .validate, .local:
            guard let record = finding.record, record.response.isOK else { return nil }
            let decision = Reuse.decision(
                stored: record.response, now: now(), policy: .cacheOnly, configuration: caching)
            guard decision == .fresh || decision == .stale else { return nil }
            // The response appears to come from the future, so its age is unknown.
            let isUnknown = record.response.responseTime > now() + Self.clockTolerance
            shown.verdict = .reuse(isStale: decision == .stale || isUnknown)
        case .reuse, .missing, .unavailable, .given: return nil
        }
        return shown.reusable
    }

    /// Returns the original with its body, or nil if no tier has the body.
    func body(of original: Original) async -> Original? {
        if original.body != nil { return original }
        return await tiers.originalBody(original.record.digest, of: (original.record, original.marks))
            .map { original.with($0, from: $1) }
    }

    /// Like `body(of:)`, but queries only memory and does not suspend.
    func bodyInMemory(of original: Original) -> Original? {
        guard tiers.isMemoryCurrent else { return nil }
        return tiers.memory.originals.entryIfPresent(for: original.record.digest).map {
            original.with(.bytes($0.body), from: .memory)
        }
    }

    /// Returns the stored variant of an original, or nil if no tier has it.
    func variant(_ key: String, of original: Original, again: Bool = false) async -> Variant? {
        guard
            let (stored, tier) = await tiers.variant(
                key, of: original.record.digest, from: original.record.source, again: again)
        else { return nil }
        return Variant(stored.entry, stored.body, from: tier)
    }

    /// Like `variant(_:of:again:)`, but queries only memory and does not suspend.
    func variantInMemory(_ key: String) -> Variant? {
        guard tiers.isMemoryCurrent, let found = tiers.memory.variants.entryIfPresent(for: key) else { return nil }
        return Variant(found.value, found.body, from: .memory)
    }

    /// Returns the finding for an original with a body that every tier has evicted, or that no tier ever holds because
    /// the original is local.
    func withoutBody(_ original: Original, _ admitted: AdmittedRequest) -> CacheFinding {
        CacheFinding(
            records: [original.record], verdict: admitted.transport.isLocal ? .local : .missing, forward: .miss,
            marks: original.marks, tier: nil, missingBody: original.record.digest)
    }

    /// Looks up the original again before a fetch, because a fetch that finished after the first look-up may have
    /// stored it. Returns nil if it is not stored, or if the request requires a new response from the origin.
    func originalStoredMeanwhile(_ finding: CacheFinding, _ admitted: AdmittedRequest) async -> Original? {
        if finding.isLocal { return nil }
        if let digest = finding.missingBody {
            guard let (body, tier) = await tiers.originalBody(digest) else { return nil }
            let again = await self(admitted, again: true)
            guard let record = again.record, record.digest == digest else { return nil }
            let outcome = ImageResponse.Outcome(tier)
            return Original(
                record: record, body: body, outcome: outcome, tier: outcome, mayStore: true, marks: again.marks)
        }
        guard [.protocol, .cacheElseLoad].contains(admitted.policy), finding.forward != .request else { return nil }
        let again = await self(admitted, again: true)
        switch again.verdict {
        case .reuse(isStale: false): return again.reusable
        case .reuse(isStale: true) where finding.record == nil: return again.reusable
        default: return nil
        }
    }

    /// Returns the most recent of the records that a request with these fields selects (RFC 9111 §4.1).
    static func selected(among records: [OriginalRecord], by fields: [HeaderField]) -> OriginalRecord? {
        let current = latest(of: records)
        return Variation.select(among: current.map(\.response), requestFields: fields).map { current[$0] }
    }

    /// Returns the records of a source that may be used for a purpose.
    static func offered(_ records: [OriginalRecord], for purpose: AdmittedRequest.Purpose) -> [OriginalRecord] {
        latest(of: purpose == .image ? records.filter { !$0.isUnusable } : records)
    }

    /// Returns the records with only one of a picture and its provisional replacement: the one that the origin sent or
    /// confirmed last.
    private static func latest(of records: [OriginalRecord]) -> [OriginalRecord] {
        guard records.contains(where: \.isProvisional) else { return records }
        return records.filter { record in
            !records.contains { other in
                let (mine, others) = (record.response.responseTime, other.response.responseTime)
                return other.isAlternative(to: record) && (others > mine || others == mine && other.isProvisional)
            }
        }
    }

    private func decide(_ finding: inout CacheFinding, _ record: OriginalRecord, _ admitted: AdmittedRequest) {
        let stored = record.response
        let time = now()
        let policy = admitted.policy
        let directives = admitted.directives
        // The response was stored before the clock was set back, so its age is unknown.
        let isOfTheFuture = policy == .protocol && stored.responseTime > time + Self.clockTolerance
        let isUsable = admitted.purpose == .original || stored.isOK
        if policy == .protocol, directives == nil, !isOfTheFuture,
            let verdict = admitted.request.verdict(on: stored, now: time, caching)
        {
            finding.verdict = verdict
            return
        }
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
            // `stale-while-revalidate` comes only from the last response, so it must not extend the limit that
            // redirects set.
            finding.verdict = .reuseAndValidate
            return
        case .gatewayTimeout:
            finding.verdict = .unavailable
        default:
            break
        }
        // Without the client's directives, the response might have been fresh.
        let isAsked =
            directives != nil && !isOfTheFuture
            && Reuse.decision(stored: stored, now: time, policy: policy, configuration: caching) == .fresh
        finding.forward = isAsked || policy == .reload || policy == .revalidate ? .request : .stale
    }

    /// Whether the origin or the configuration declares the lifetime of a response. A stored error may answer a request
    /// for a picture only if one of them does.
    private func hasDeclaredLifetime(_ stored: StoredResponse) -> Bool {
        let basis = Freshness.lifetime(of: stored, configuration: caching).basis
        return basis != .heuristic && basis != .none
    }

    /// Adds the body of the selected record. If no tier has the body, the record is treated as not stored.
    private func addBody(
        to finding: inout CacheFinding, _ record: OriginalRecord, _ admitted: AdmittedRequest
    ) async {
        if let (body, tier) = await tiers.originalBody(record.digest, of: (record, finding.marks)) {
            finding.body = body
            finding.tier = ImageResponse.Outcome(tier)
            return
        }
        finding.record = nil
        // No tier ever has the body of a local original.
        if finding.isLocal { return }
        finding.records.removeAll { $0.digest == record.digest }
        finding.verdict = withoutRecord(admitted)
        finding.forward = .miss
    }

    private func withoutRecord(_ admitted: AdmittedRequest) -> CacheFinding.Verdict {
        Reuse.decisionWithoutStored(policy: admitted.policy, directives: admitted.directives)
            == .gatewayTimeout ? .unavailable : .missing
    }
}
