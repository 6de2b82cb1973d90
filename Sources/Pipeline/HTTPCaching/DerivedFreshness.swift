// What we make of a stored response is as fresh as that response, no fresher. A recipient counts from when it gets our
// answer, which carries no `Age`, so `max-age` is what remains, not what was.

/// The `Cache-Control` of something derived from a stored response, such as a variant of an original.
public enum DerivedFreshness {
    /// The value of one `Cache-Control` field, never empty.
    ///
    /// `no-store` alone where the original forbids storing. Else `max-age` is what remains of the lifetime: 0 when the
    /// original is used stale or its lifetime is over, `no-cache` in its place where the original says `no-cache` or
    /// nothing about freshness at all. `s-maxage` follows where shared caches may keep it longer than others. Carried
    /// over are `private`, `must-revalidate`, `proxy-revalidate`, `immutable` while fresh, and what remains of
    /// `stale-while-revalidate` and `stale-if-error`. Sources: RFC 9111 §4.2.1 and §5.2.2, RFC 5861, RFC 8246.
    ///
    /// - Parameters:
    ///   - response: the original's stored response.
    ///   - isStale: whether it was used though stale, without validation.
    ///   - now: Unix seconds.
    ///   - configuration: shared or private, and the lifetime of originals that give none.
    public static func cacheControl(
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
        // The windows begin when the lifetime ends: what of them has passed is not given away a second time.
        let passed = max(0, -remaining)
        for name in ["stale-while-revalidate", "stale-if-error"] {
            guard case .value(let window) = control.seconds(name), whole(Double(window) - passed) > 0 else { continue }
            directives.append("\(name)=\(whole(Double(window) - passed))")
        }
        return directives.joined(separator: ", ")
    }

    /// What `max-age` or `Expires` give those whom `s-maxage` does not concern; nil where `s-maxage` is all there is.
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
