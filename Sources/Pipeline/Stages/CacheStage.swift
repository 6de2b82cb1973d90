/// Finds what is stored of a request's original and whether it may be used without asking.
struct CacheStage: Sendable {
    let tiers: CacheTiers
    let caching: CachingConfiguration
    /// Unix seconds.
    let now: @Sendable () -> Double

    func callAsFunction(_ admitted: AdmittedRequest) async -> CacheFinding {
        if case .bytes = admitted.origin {
            return CacheFinding(
                admitted: admitted, record: nil, verdict: .missing, generation: await tiers.currentGeneration(),
                tier: .none)
        }
        let found = await tiers.records(of: admitted.source)
        var finding = CacheFinding(
            admitted: admitted, record: nil, verdict: .missing, generation: found.generation, tier: found.tier)
        if case .file = admitted.origin {
            // Whether the file is unchanged is for the fetch stage to see: it costs one fstat.
            finding.record = found.records.first
            if finding.record != nil { finding.verdict = .validate }
            return finding
        }
        guard
            let record = found.records.last(where: {
                Variation.selects($0.response, requestFields: admitted.request.fields)
            })
        else { return finding }
        finding.record = record
        switch Reuse.decision(
            stored: record.response, now: now(), policy: admitted.request.policy, configuration: caching)
        {
        case .fresh: finding.verdict = .reuse(isStale: false)
        case .stale: finding.verdict = .reuse(isStale: true)
        case .staleWhileRevalidate, .mustValidate, .mustFetch, .gatewayTimeout: finding.verdict = .validate
        }
        return finding
    }
}
