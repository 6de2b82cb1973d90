import HTTPCaching
import PipelineCaching

/// Finds a request's stored original and decides whether it may be used without asking the origin.
struct CacheStage: Sendable {
    let tiers: CacheTiers
    let caching: CachingConfiguration
    /// Unix seconds.
    let now: @Sendable () -> Double

    /// Seconds by which a response may seem to come from the future before its age counts as unknown.
    static let clockTolerance = 2.0

    /// - Parameter looksOnDisk: looks there even if memory has records: another process may have stored newer ones.
    func callAsFunction(_ admitted: AdmittedRequest, looksOnDisk: Bool = false) async -> CacheFinding {
        if case .bytes = admitted.origin {
            return CacheFinding(
                admitted: admitted, verdict: .missing, generation: await tiers.currentGeneration(), tier: .none)
        }
        let found = await tiers.records(of: admitted.source, looksOnDisk: looksOnDisk)
        var finding = CacheFinding(
            admitted: admitted, records: found.records, verdict: .missing, generation: found.generation,
            tier: OriginalOutcome(found.tier))
        if case .file = admitted.origin {
            // The fetch stage checks whether the file is unchanged, which costs one fstat.
            finding.record = found.records.first
            if finding.record != nil { finding.verdict = .validate }
            return finding
        }
        // A response reached through redirects does not satisfy a request for the redirect itself, and vice versa.
        finding.records.removeAll { admitted.followsRedirects ? $0.isRedirect : $0.finalURL != nil }
        guard let record = Self.selected(among: finding.records, by: admitted.request.fields) else {
            finding.forward = finding.records.isEmpty ? .uriMiss : .varyMiss
            finding.verdict = withoutRecord(admitted)
            return finding
        }
        finding.record = record
        decide(&finding, record)
        if finding.tier == .disk, finding.isStale { tiers.noteStale() }
        if admitted.purpose == .original { await addBody(to: &finding, record) }
        return finding
    }

    /// The most recent of the records that a request with these fields selects (RFC 9111 §4.1).
    static func selected(among records: [OriginalRecord], by fields: [HeaderField]) -> OriginalRecord? {
        Variation.select(among: records.map(\.response), requestFields: fields).map { records[$0] }
    }

    private func decide(_ finding: inout CacheFinding, _ record: OriginalRecord) {
        let stored = record.response
        let time = now()
        let policy = finding.admitted.request.policy
        let directives = finding.admitted.directives
        // Stored before the clock was set back: its age is unknown.
        let isOfTheFuture = policy == .protocol && stored.responseTime > time + Self.clockTolerance
        let isUsable = finding.admitted.purpose == .original || stored.status == 200
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
    private func addBody(to finding: inout CacheFinding, _ record: OriginalRecord) async {
        if let (body, tier) = await tiers.originalBody(record.digest, of: record) {
            finding.body = body
            finding.tier = OriginalOutcome(tier)
            return
        }
        finding.record = nil
        finding.records.removeAll { $0.digest == record.digest }
        finding.verdict = withoutRecord(finding.admitted)
        finding.forward = .miss
    }

    private func withoutRecord(_ admitted: AdmittedRequest) -> CacheFinding.Verdict {
        Reuse.decisionWithoutStored(policy: admitted.request.policy, directives: admitted.directives)
            == .gatewayTimeout ? .unavailable : .missing
    }
}
