/// How long a stored response stays fresh, and the rule that determines it.
package struct FreshnessLifetime: Sendable, Hashable {
    /// The rule that determines the lifetime. Rules are tried in this order.
    package enum Basis: String, Sendable, Hashable {
        /// `s-maxage`, which applies only in a shared cache.
        case sharedMaxAge = "s-maxage"
        case maxAge = "max-age"
        /// `Expires` − `Date`.
        case expires
        /// A tenth of `Date` − `Last-Modified`.
        case heuristic
        /// The `defaultMaxAge` of the configuration, or a lifetime assigned to the response.
        case configured
        /// No rule applies, so the lifetime is zero.
        case none
    }

    /// The lifetime in seconds (≥ 0), counted from when the origin generated the response.
    package var seconds: Double
    package var basis: Basis

    package init(seconds: Double, basis: Basis) {
        self.seconds = seconds
        self.basis = basis
    }
}

/// Computes the freshness of stored responses (RFC 9111 §4.2).
package enum Freshness {
    /// The statuses that may have a heuristic lifetime (RFC 9110 §15.1), except 206, because partial responses are not
    /// stored. Other statuses may have one if the response has `public` (RFC 9111 §4.2.2).
    static let heuristicStatuses: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]
    /// The maximum heuristic lifetime, one day. §4.2.2 leaves the limit to the cache.
    static let heuristicCap = 86_400.0

    /// Returns how long a stored response stays fresh, counted from when the origin generated it.
    ///
    /// The lifetime comes from the first of these that is present: `s-maxage` (only in a shared cache), `max-age`,
    /// `Expires` − `Date`, a tenth of `Date` − `Last-Modified` (at most a day), and the configured default. Malformed
    /// or contradictory values are treated as zero. A targeted field replaces all of `Cache-Control` and `Expires`.
    /// Sources: RFC 9111 §4.2.1 and §4.2.2, RFC 9213 §2.2.
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

    /// Returns the lifetime determined by the fields and the configuration, ignoring a lifetime assigned to the
    /// response.
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
            let (seconds, fraction) = configured.components
            return FreshnessLifetime(seconds: max(0, Double(seconds) + Double(fraction) / 1e18), basis: .configured)
        }
        return FreshnessLifetime(seconds: 0, basis: .none)
    }

    /// Returns the remaining freshness at `now` (Unix seconds), in seconds. The value is zero or negative if the
    /// response is stale (RFC 9111 §4.2), has been soft-purged, or is in doubt.
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
