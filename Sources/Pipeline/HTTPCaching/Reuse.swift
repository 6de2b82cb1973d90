/// What to do with a stored response that a request selects.
public enum ReuseDecision: String, Sendable, Hashable {
    /// Reuse it; it is fresh.
    case fresh
    /// Reuse it though it is stale, because the request's policy says so.
    case stale
    /// Reuse it though it is stale, and validate it meanwhile (RFC 5861 §3).
    case staleWhileRevalidate
    /// Validate it with the origin before reuse.
    case mustValidate
    /// Ask the origin without validators: none is stored, or the policy wants a new response.
    case mustFetch
}

/// What may be said of a stored response when the origin fails to answer for it.
public enum OriginFailure: Sendable, Hashable {
    /// No response came: unreachable, timed out, broken off.
    case noResponse
    /// A response came with this status.
    case status(Int)
}

/// Reusing stored responses (RFC 9111 §4).
public enum Reuse {
    /// What to do with the stored response under a policy.
    ///
    /// With `protocol`: fresh unless `no-cache`; stale within `stale-while-revalidate` unless forbidden; else validated.
    /// `cacheElseLoad` and `cacheOnly` are the caller's word against the origin's and reuse at any age.
    ///
    /// - Parameter now: Unix seconds.
    public static func decision(
        stored: StoredResponse, now: Double, policy: CachePolicy,
        configuration: CachingConfiguration = CachingConfiguration()
    ) -> ReuseDecision {
        let toOrigin: ReuseDecision = Validation.hasValidator(stored) ? .mustValidate : .mustFetch
        let control = CacheControl(fields: stored.fields)
        let remaining = Freshness.remaining(of: stored, now: now, configuration: configuration)
        let isFresh = remaining > 0 && !control.has("no-cache")
        switch policy {
        case .reload: return .mustFetch
        case .revalidate: return toOrigin
        case .cacheElseLoad, .cacheOnly: return isFresh ? .fresh : .stale
        case .protocol:
            if isFresh { return .fresh }
            if case .value(let window) = control.seconds("stale-while-revalidate"), -remaining < Double(window),
                !forbidsStale(control, configuration: configuration)
            {
                return .staleWhileRevalidate
            }
            return toOrigin
        }
    }

    /// Whether a stale response may stand in when the origin failed (RFC 9111 §4.2.4, RFC 5861 §4).
    ///
    /// Where no response came, unless a directive forbids stale responses. Where an error came (500, 502, 503, 504),
    /// only within `stale-if-error`. A stored 5xx never hides a failure.
    ///
    /// - Parameter now: Unix seconds.
    public static func mayServeStale(
        _ stored: StoredResponse, after failure: OriginFailure, now: Double,
        configuration: CachingConfiguration = CachingConfiguration()
    ) -> Bool {
        let control = CacheControl(fields: stored.fields)
        guard stored.status < 500, !forbidsStale(control, configuration: configuration) else { return false }
        switch failure {
        case .noResponse:
            return true
        case .status(let status):
            guard [500, 502, 503, 504].contains(status),
                case .value(let window) = control.seconds("stale-if-error")
            else { return false }
            return -Freshness.remaining(of: stored, now: now, configuration: configuration) < Double(window)
        }
    }

    /// `no-cache` and `must-revalidate` forbid it everywhere, `proxy-revalidate` and `s-maxage` in a shared cache
    /// (RFC 9111 §4.2.4, §5.2.2.2, §5.2.2.8, §5.2.2.10).
    static func forbidsStale(_ control: CacheControl, configuration: CachingConfiguration) -> Bool {
        if control.has("no-cache") || control.has("must-revalidate") { return true }
        return !configuration.isPrivate && (control.has("proxy-revalidate") || control.has("s-maxage"))
    }
}
