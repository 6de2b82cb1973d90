/// How long a stored response stays fresh, and which rule says so.
package struct FreshnessLifetime: Sendable, Hashable {
    /// The rule that gave the lifetime, in the order they are tried.
    package enum Basis: String, Sendable, Hashable {
        /// `s-maxage`, shared caches only.
        case sharedMaxAge = "s-maxage"
        case maxAge = "max-age"
        /// `Expires` − `Date`.
        case expires
        /// A tenth of `Date` − `Last-Modified`.
        case heuristic
        /// `defaultMaxAge` of the configuration, or a lifetime assigned to the response.
        case configured
        /// No rule applies; the lifetime is zero.
        case none
    }

    /// Seconds from when the origin made the response, ≥ 0.
    package var seconds: Double
    package var basis: Basis

    package init(seconds: Double, basis: Basis) {
        self.seconds = seconds
        self.basis = basis
    }
}

/// Freshness of stored responses (RFC 9111 §4.2).
package enum Freshness {
    /// Statuses with a heuristic lifetime (RFC 9110 §15.1). 206 is not among them, because partial responses are not
    /// stored. Other statuses have one if `public` says so (RFC 9111 §4.2.2).
    static let heuristicStatuses: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]
    /// No heuristic lifetime is longer than a day (our cap; §4.2.2 leaves it to the cache).
    static let heuristicCap = 86_400.0

    /// How long a stored response stays fresh, counted from when the origin generated it.
    ///
    /// The first present of `s-maxage` (shared cache), `max-age`, `Expires` − `Date`; else a tenth of
    /// `Date` − `Last-Modified`, at most a day; else the configured default. Malformed or contradictory values count as
    /// zero. A targeted field replaces all of `Cache-Control` and `Expires`. Source: RFC 9111 §4.2.1 and §4.2.2,
    /// RFC 9213 §2.2.
    package static func lifetime(
        of response: StoredResponse, configuration: CachingConfiguration = CachingConfiguration()
    ) -> FreshnessLifetime {
        var lifetime = declaredLifetime(of: response, configuration: configuration)
        if let assigned = response.assignedLifetime {
            lifetime = FreshnessLifetime(seconds: max(0, assigned), basis: .configured)
        }
        if let limit = response.lifetimeLimit { lifetime.seconds = min(lifetime.seconds, max(0, limit)) }
        return lifetime
    }

    /// The lifetime that fields and configuration give, before what was assigned to this response.
    private static func declaredLifetime(
        of response: StoredResponse, configuration: CachingConfiguration
    ) -> FreshnessLifetime {
        let governing = GoverningDirectives(fields: response.fields, configuration: configuration)
        let control = governing.control
        if !configuration.isPrivate, let seconds = seconds(control.seconds("s-maxage")) {
            return FreshnessLifetime(seconds: seconds, basis: .sharedMaxAge)
        }
        if let seconds = seconds(control.seconds("max-age")) {
            return FreshnessLifetime(seconds: seconds, basis: .maxAge)
        }
        let date = Age.date(of: response)
        let expires = governing.isTargeted ? [] : response.fields.values(of: "expires")
        if let first = expires.first {
            let isSingle = expires.allSatisfy { FieldLines.isSame($0, first) }
            guard isSingle, let time = HTTPDate.unixSeconds(first, now: response.responseTime) else {
                return FreshnessLifetime(seconds: 0, basis: .expires)
            }
            return FreshnessLifetime(seconds: max(0, Double(time) - date), basis: .expires)
        }
        let hasHeuristic = heuristicStatuses.contains(response.status) || control.has("public")
        if hasHeuristic, let text = response.fields.first("last-modified"),
            let modified = HTTPDate.unixSeconds(text, now: response.responseTime), Double(modified) < date
        {
            let tenth = ((date - Double(modified)) / 10).rounded(.down)
            return FreshnessLifetime(seconds: min(tenth, heuristicCap), basis: .heuristic)
        }
        if response.isOK, let configured = configuration.defaultMaxAge {
            return FreshnessLifetime(seconds: Double(max(0, configured)), basis: .configured)
        }
        return FreshnessLifetime(seconds: 0, basis: .none)
    }

    /// Seconds of freshness left at `now` (Unix seconds); zero or negative when stale (RFC 9111 §4.2), after a soft purge,
    /// or in doubt.
    package static func remaining(
        of response: StoredResponse, now: Double, configuration: CachingConfiguration = CachingConfiguration()
    ) -> Double {
        let remaining =
            lifetime(of: response, configuration: configuration).seconds - Age.current(of: response, now: now)
        return response.isSoftPurged || response.isInDoubt ? min(remaining, 0) : remaining
    }

    private static func seconds(_ given: CacheControl.Seconds) -> Double? {
        switch given {
        case .absent: nil
        case .value(let value): Double(value)
        case .invalid: 0
        }
    }
}
