/// What to do with a stored response that a request selects.
package enum ReuseDecision: String, Sendable, Hashable {
    /// Reuse it; it is fresh.
    case fresh
    /// Reuse it although it is stale, because the policy or the client's `max-stale` permits it.
    case stale
    /// Reuse it although it is stale, and validate it in the background (RFC 5861 §3).
    case staleWhileRevalidate
    /// Validate it with the origin before reuse.
    case mustValidate
    /// Ask the origin without validators: none is stored, or the policy wants a new response.
    case mustFetch
    /// Answer 504: nothing stored can be used, and the request forbids asking (`only-if-cached`, RFC 9111 §5.2.1.7).
    case gatewayTimeout
}

/// How an origin failed to answer.
package enum OriginFailure: Sendable, Hashable {
    /// No response came: unreachable, timed out, broken off.
    case noResponse
    /// A response came with this status.
    case status(Int)
    /// A 200 came of which nothing can be made.
    case unusable
}

/// Reusing stored responses (RFC 9111 §4). `now` is Unix seconds; `directives` is nil if the client's are ignored.
package enum Reuse {
    /// What to do with the stored response that a request selects.
    ///
    /// With `protocol`: a fresh response is reused, unless it has `no-cache` without field names; a stale one if the
    /// client's `max-stale` permits it or within `stale-while-revalidate`, unless forbidden; otherwise it is validated.
    /// After a soft purge, what would be fresh is as if within `stale-while-revalidate`. What is in doubt is validated, and
    /// answers nothing where the origin may not be asked.
    /// The client's `no-cache`, `max-age` and `min-fresh` demand validation, except that a fresh `immutable` response
    /// satisfies any `max-age` (RFC 8246 §2.1). The other policies override the client and the origin.
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

    /// What to do if the request selects no stored response.
    package static func decisionWithoutStored(
        policy: CachePolicy, directives: RequestDirectives? = nil
    ) -> ReuseDecision {
        if policy == .cacheOnly { return .gatewayTimeout }
        return policy == .protocol && directives?.onlyIfCached == true ? .gatewayTimeout : .mustFetch
    }

    /// Whether a stale response may stand in when the origin failed (RFC 9111 §4.2.4 and §4.3.3, RFC 5861 §4).
    ///
    /// A failure is no response, any 5xx, or a 200 that its recipient cannot use. A stale response may then be served
    /// unless one of its directives forbids it, the client asked for validation with `no-cache`, or the response is
    /// itself a 5xx, which would hide one failure behind another. If the response or the client gives `stale-if-error`,
    /// staleness beyond both forbids it too, unless the client's `max-stale` permits it.
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

    /// The fields to answer with from a stored response, except `Age`, which `Age.fieldValue` gives (RFC 9111 §4).
    ///
    /// The received `Age` is left out, and so are the fields that `no-cache` names unless the response was just
    /// validated (§5.2.2.4).
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

    /// Whether stale reuse is forbidden: by `no-cache` and `must-revalidate` in every cache, by `proxy-revalidate` and
    /// `s-maxage` in a shared cache (RFC 9111 §4.2.4, §5.2.2.2, §5.2.2.8, §5.2.2.10).
    static func forbidsStale(_ control: CacheControl, configuration: CachingConfiguration) -> Bool {
        if control.forbidsReuse || control.has("must-revalidate") { return true }
        return !configuration.isPrivate && (control.has("proxy-revalidate") || control.has("s-maxage"))
    }
}
