/// Finds what is stored of a request's original and whether it may be used without asking.
struct CacheStage: Sendable {
    let tiers: CacheTiers
    let caching: CachingConfiguration
    /// Unix seconds.
    let now: @Sendable () -> Double

    /// Seconds by which a response may seem to come from the future before its age counts as unknown.
    static let clockTolerance = 2.0

    /// - Parameter looksOnDisk: also where memory has something: another process may have stored what is newer.
    func callAsFunction(_ admitted: AdmittedRequest, looksOnDisk: Bool = false) async -> CacheFinding {
        if case .bytes = admitted.origin {
            return CacheFinding(
                admitted: admitted, verdict: .missing, generation: await tiers.currentGeneration(), tier: .none)
        }
        let found = await tiers.records(of: admitted.source, looksOnDisk: looksOnDisk)
        var finding = CacheFinding(
            admitted: admitted, records: found.records, verdict: .missing, generation: found.generation,
            tier: found.tier)
        if case .file = admitted.origin {
            // Whether the file is unchanged is for the fetch stage to see: it costs one fstat.
            finding.record = found.records.first
            if finding.record != nil { finding.verdict = .validate }
            return finding
        }
        // What redirects led to does not answer who wants the redirect, nor the other way round.
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
        // Kept under a clock that has been set back since: nobody knows its age.
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
            // What redirects limit is not reused beyond them: the window is the last response's alone.
            finding.verdict = .reuseAndValidate
            return
        case .gatewayTimeout:
            finding.verdict = .unavailable
        default:
            break
        }
        // Without the client's directives it might have been fresh.
        let isAsked =
            directives != nil && !isOfTheFuture
            && Reuse.decision(stored: stored, now: time, policy: policy, configuration: caching) == .fresh
        finding.forward = isAsked || policy == .reload || policy == .revalidate ? .request : .stale
    }

    /// A picture's absence is believed when the origin or the configuration says for how long, not by a guess.
    private func hasDeclaredLifetime(_ stored: StoredResponse) -> Bool {
        let basis = Freshness.lifetime(of: stored, configuration: caching).basis
        return basis != .heuristic && basis != .none
    }

    /// Adds the body of the selected record, or takes it as not stored: a response is not answered by halves.
    private func addBody(to finding: inout CacheFinding, _ record: OriginalRecord) async {
        if let (body, tier) = await tiers.originalBody(record.digest, of: record) {
            finding.body = body
            finding.tier = tier
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
