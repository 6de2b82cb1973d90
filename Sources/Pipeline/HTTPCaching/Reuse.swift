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
    /// Answer 504: nothing stored will do, and the request forbids asking the origin (`only-if-cached`, RFC 9111 §5.2.1.7).
    case gatewayTimeout
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
    /// What to do with the stored response that a request selects.
    ///
    /// With `protocol`: fresh unless `no-cache` without field names; stale where the client's `max-stale` permits it or
    /// within `stale-while-revalidate`, unless forbidden; else validated. The client's `no-cache`, `max-age` and
    /// `min-fresh` demand validation, except that a fresh `immutable` response satisfies any `max-age` (RFC 8246 §2.1).
    /// The other policies are the caller's word against the client's and the origin's.
    ///
    /// - Parameters:
    ///   - now: Unix seconds.
    ///   - directives: what the client asked for; nil where clients have no say.
    public static func decision(
        stored: StoredResponse, now: Double, policy: CachePolicy,
        configuration: CachingConfiguration = CachingConfiguration(), directives: RequestDirectives? = nil
    ) -> ReuseDecision {
        let toOrigin: ReuseDecision = Validation.hasValidator(stored) ? .mustValidate : .mustFetch
        let control = CacheControl(fields: stored.fields)
        let remaining = Freshness.remaining(of: stored, now: now, configuration: configuration)
        let isFresh = remaining > 0 && !control.has("no-cache")
        switch policy {
        case .reload: return .mustFetch
        case .revalidate: return toOrigin
        case .cacheElseLoad, .cacheOnly: return isFresh ? .fresh : .stale
        case .protocol: break
        }
        let asked = directives ?? RequestDirectives()
        let otherwise = asked.onlyIfCached ? .gatewayTimeout : toOrigin
        let age = Age.current(of: stored, now: now)
        if asked.noCache { return otherwise }
        if let most = asked.maxAge, age > Double(most), !(isFresh && control.has("immutable")) { return otherwise }
        if let least = asked.minFresh, remaining < Double(least) { return otherwise }
        if isFresh { return .fresh }
        if forbidsStale(control, configuration: configuration) { return otherwise }
        if asked.permitsStale(by: -remaining) { return .stale }
        // A client that names an age or a rest of freshness does not want stale responses (RFC 9111 §5.2.1.1).
        if asked.maxAge == nil, asked.minFresh == nil,
            case .value(let window) = control.seconds("stale-while-revalidate"), -remaining < Double(window)
        {
            return .staleWhileRevalidate
        }
        return otherwise
    }

    /// What to do where nothing is stored that the request selects.
    public static func decisionWithoutStored(
        policy: CachePolicy, directives: RequestDirectives? = nil
    ) -> ReuseDecision {
        if policy == .cacheOnly { return .gatewayTimeout }
        return policy == .protocol && directives?.onlyIfCached == true ? .gatewayTimeout : .mustFetch
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
