/// A decision about how to use a stored response that a request selects.
package enum ReuseDecision: String, Sendable, Hashable {
    /// Reuse the response, which is fresh.
    case fresh
    /// Reuse the response although it is stale, because the policy or the client's `max-stale` permits it.
    case stale
    /// Reuse the response although it is stale, and validate it in the background (RFC 5861 §3).
    case staleWhileRevalidate
    /// Validate the response with the origin before reuse.
    case mustValidate
    /// Send a request without validators, because none is stored or the policy requires a new response.
    case mustFetch
    /// Answer with 504, because no stored response can be used and the request forbids contacting the origin
    /// (`only-if-cached`, RFC 9111 §5.2.1.7).
    case gatewayTimeout
}

/// How the origin failed.
package enum OriginFailure: Sendable, Hashable {
    /// No response arrived, because the origin could not be reached, timed out, or closed the connection early.
    case noResponse
    /// The origin sent a response with this status.
    case status(Int)
    /// The origin sent a 200 that cannot be rendered.
    case unusable
}

/// Decides whether stored responses may be reused (RFC 9111 §4). `now` is in Unix seconds. `directives` is nil if the
/// client's directives are ignored.
package enum Reuse {
    /// Decides how to use the stored response that a request selects.
    ///
    /// With the policy `protocol`:
    ///
    /// - A fresh response is reused, unless it has `no-cache` without field names.
    /// - A stale response is reused if the client's `max-stale` permits it, or within `stale-while-revalidate`, unless
    ///   the response forbids stale reuse. Otherwise it is validated.
    /// - After a soft purge, a fresh response is treated like one within `stale-while-revalidate`.
    /// - The client's `no-cache`, `max-age` and `min-fresh` can require validation. A fresh `immutable` response
    ///   satisfies any `max-age` (RFC 8246 §2.1).
    ///
    /// The other policies take precedence over the directives of the client and the origin. With any policy, a response
    /// in doubt is validated. Such a response is not used if the origin may not be contacted.
    package static func decision(
        stored: StoredResponse, now: Double, policy: CachePolicy,
        configuration: CachingConfiguration = CachingConfiguration(), directives: RequestDirectives? = nil
    ) -> ReuseDecision {
        var toOrigin: ReuseDecision { Validation.hasValidator(stored) ? .mustValidate : .mustFetch }
        if policy == .reload { return .mustFetch }
        if policy == .revalidate { return toOrigin }
        if stored.isInDoubt {
            let mayAsk = policy != .cacheOnly && !(policy == .protocol && directives?.onlyIfCached == true)
            return mayAsk ? toOrigin : .gatewayTimeout
        }
        let control = GoverningDirectives(fields: stored.fields, configuration: configuration).control
        let age = Age.current(of: stored, now: now)
        let remaining = Freshness.lifetime(of: stored, configuration: configuration).seconds - age
        let isFresh = remaining > 0 && !control.forbidsReuse && !stored.isSoftPurged
        let isError = (400...599).contains(stored.status)
        if policy == .cacheElseLoad, isError, !isFresh { return toOrigin }
        if policy != .protocol { return isFresh ? .fresh : .stale }
        let asked = directives ?? RequestDirectives()
        var otherwise: ReuseDecision { asked.onlyIfCached ? .gatewayTimeout : toOrigin }
        if asked.noCache { return otherwise }
        if let most = asked.maxAge, age > Double(most), !(isFresh && control.has("immutable")) { return otherwise }
        if let least = asked.minFresh, remaining < Double(least) { return otherwise }
        if isFresh { return .fresh }
        if forbidsStale(control, configuration: configuration) { return otherwise }
        if stored.isSoftPurged, remaining > 0 {
            return asked.maxAge == nil && asked.minFresh == nil ? .staleWhileRevalidate : otherwise
        }
        if asked.permitsStale(by: -remaining) { return .stale }
        // A client that sends `max-age` or `min-fresh` does not want stale responses (RFC 9111 §5.2.1.1).
        if asked.maxAge == nil, asked.minFresh == nil,
            case .value(let window) = control.seconds("stale-while-revalidate"), -remaining < Double(window)
        {
            return .staleWhileRevalidate
        }
        return otherwise
    }

    /// Decides how to answer a request that selects no stored response.
    package static func decisionWithoutStored(
        policy: CachePolicy, directives: RequestDirectives? = nil
    ) -> ReuseDecision {
        if policy == .cacheOnly { return .gatewayTimeout }
        return policy == .protocol && directives?.onlyIfCached == true ? .gatewayTimeout : .mustFetch
    }

    /// Whether a stale response may be served after the origin failed (RFC 9111 §4.2.4 and §4.3.3, RFC 5861 §4).
    ///
    /// A failure is a missing response, any 5xx, or a 200 that cannot be used. A stale response may be served unless
    /// one of its directives forbids stale reuse, the client sent `no-cache`, or the response is itself a 5xx, which
    /// would replace one failure with another. If the response or the client specifies `stale-if-error`, the staleness
    /// must be within one of the two limits, unless the client's `max-stale` permits it.
    package static func mayServeStale(
        _ stored: StoredResponse, after failure: OriginFailure, now: Double,
        configuration: CachingConfiguration = CachingConfiguration(), directives: RequestDirectives? = nil
    ) -> Bool {
        if case .status(let status) = failure, !(500...599).contains(status) { return false }
        let control = GoverningDirectives(fields: stored.fields, configuration: configuration).control
        guard !(500...599).contains(stored.status), directives?.noCache != true,
            !forbidsStale(control, configuration: configuration)
        else { return false }
        let staleness = -Freshness.remaining(of: stored, now: now, configuration: configuration)
        if let asked = directives {
            if asked.permitsStale(by: staleness) { return true }
            if let window = asked.staleIfError, staleness <= Double(window) { return true }
        }
        switch control.seconds("stale-if-error") {
        case .absent: return directives?.staleIfError == nil
        case .value(let window): return staleness <= Double(window)
        case .invalid: return false
        }
    }

    /// Returns the header fields of a stored response that is reused (RFC 9111 §4). They exclude `Age`, which
    /// `Age.fieldValue` provides.
    ///
    /// The fields listed by `no-cache` are also excluded, unless the response was just validated (§5.2.2.4).
    package static func fields(
        of stored: StoredResponse, wasValidated: Bool, configuration: CachingConfiguration = CachingConfiguration()
    ) -> [HeaderField] {
        var dropped = ["age"]
        if !wasValidated {
            let control = GoverningDirectives(fields: stored.fields, configuration: configuration).control
            dropped += control.fieldsToValidate
        }
        return stored.fields.dropping(dropped)
    }

    /// Whether stale reuse is forbidden. `no-cache` and `must-revalidate` forbid it in every cache, and
    /// `proxy-revalidate` and `s-maxage` forbid it in a shared cache (RFC 9111 §4.2.4, §5.2.2.2, §5.2.2.8, §5.2.2.10).
    static func forbidsStale(_ control: CacheControl, configuration: CachingConfiguration) -> Bool {
        if control.forbidsReuse || control.has("must-revalidate") { return true }
        return !configuration.isPrivate && (control.has("proxy-revalidate") || control.has("s-maxage"))
    }
}
