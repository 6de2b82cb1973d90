// What we derive from a stored response is no fresher than that response. A recipient counts from when it gets our
// answer, which carries no `Age`, so `max-age` is the remaining lifetime, not the original one.

/// The `Cache-Control` of a response derived from a stored one, such as a variant of an original.
package enum DerivedFreshness {
    /// The value of one `Cache-Control` field, never empty.
    ///
    /// Only `no-store` if the original forbids storing. Otherwise `max-age` is the remaining lifetime: 0 if the
    /// original is used stale or its lifetime is over; `no-cache` replaces it if the original says `no-cache` or
    /// nothing about freshness at all. `s-maxage` follows if shared caches may keep it longer than others. `private`,
    /// `must-revalidate`, `proxy-revalidate`, `immutable` while fresh, and the remainders of `stale-while-revalidate`
    /// and `stale-if-error` are carried over. Sources: RFC 9111 §4.2.1 and §5.2.2, RFC 5861, RFC 8246.
    package static func cacheControl(
        of response: StoredResponse, isStale: Bool, now: Double,
        configuration: CachingConfiguration = CachingConfiguration()
    ) -> String {
        let control = CacheControl(fields: response.fields)
        if control.has("no-store") { return "no-store" }
        let lifetime = Freshness.lifetime(of: response, configuration: configuration)
        let age = Age.current(of: response, now: now)
        let remaining = lifetime.seconds - age
        let isFresh = remaining > 0 && !isStale
        var directives: [String] = []
        if control.has("private") { directives.append("private") }
        if control.has("no-cache") || (lifetime.basis == .none && !isStale) {
            directives.append("no-cache")
        } else if isFresh {
            let everybody = privateLifetime(of: response, configuration: configuration) ?? lifetime.seconds
            let kept = min(remaining, everybody - age)
            directives.append("max-age=\(whole(kept))")
            if whole(kept) < whole(remaining) { directives.append("s-maxage=\(whole(remaining))") }
        } else {
            directives.append("max-age=0")
        }
        for name in ["must-revalidate", "proxy-revalidate"] where control.has(name) { directives.append(name) }
        if isFresh, control.has("immutable") { directives.append("immutable") }
        // The windows begin when the lifetime ends: the part that has passed must not be granted a second time.
        let passed = max(0, -remaining)
        for name in ["stale-while-revalidate", "stale-if-error"] {
            guard case .value(let window) = control.seconds(name), whole(Double(window) - passed) > 0 else { continue }
            directives.append("\(name)=\(whole(Double(window) - passed))")
        }
        return directives.joined(separator: ", ")
    }

    /// The lifetime that `max-age` or `Expires` gives caches that ignore `s-maxage`; nil if there is neither.
    private static func privateLifetime(
        of response: StoredResponse, configuration: CachingConfiguration
    ) -> Double? {
        var configuration = configuration
        configuration.isPrivate = true
        let lifetime = Freshness.lifetime(of: response, configuration: configuration)
        return lifetime.basis == .maxAge || lifetime.basis == .expires ? lifetime.seconds : nil
    }

    private static func whole(_ seconds: Double) -> Int { Int(max(0, min(seconds, 2_147_483_648)).rounded(.down)) }
}
