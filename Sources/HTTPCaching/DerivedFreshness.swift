// A response must not be fresher than the stored response that it is derived from. The derived response has no `Age`
// field, and a recipient counts its age from arrival. `max-age` is therefore the remaining lifetime rather than the
// original one.

/// Computes the `Cache-Control` of a response derived from a stored one, such as a variant of an original.
package enum DerivedFreshness {
    /// Returns the value of a single `Cache-Control` field, never empty.
    ///
    /// - If the original has `no-store`, the value is only `no-store`.
    /// - Otherwise `max-age` is the remaining lifetime. It is 0 if the original is used stale or its lifetime has
    ///   passed. `no-cache` replaces `max-age` if the original has `no-cache`, or no freshness information.
    /// - `s-maxage` is added if shared caches may keep the response longer than private ones.
    /// - `private`, `must-revalidate` and `proxy-revalidate` are copied, as is `immutable` while the original is fresh.
    /// - `stale-while-revalidate` and `stale-if-error` are copied with their remaining time.
    ///
    /// Sources: RFC 9111 §4.2.1 and §5.2.2, RFC 5861, RFC 8246.
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
        // The windows begin when the lifetime ends. The part that has passed must not be granted a second time.
        let passed = max(0, -remaining)
        for name in ["stale-while-revalidate", "stale-if-error"] {
            guard case .value(let window) = control.seconds(name), whole(Double(window) - passed) > 0 else { continue }
            directives.append("\(name)=\(whole(Double(window) - passed))")
        }
        return directives.joined(separator: ", ")
    }

    /// Returns the lifetime for caches that ignore `s-maxage`, which is taken from `max-age` or `Expires`. Returns nil
    /// if the response has neither.
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
