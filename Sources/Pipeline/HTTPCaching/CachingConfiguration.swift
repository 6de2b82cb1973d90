/// How far one request may use what is stored, and how far it must ask the origin.
public enum CachePolicy: String, Sendable, Hashable, CaseIterable {
    /// RFC 9111: fresh responses are reused, stale ones validated. The default.
    case `protocol`
    /// Whatever is stored, stale or not, and the origin only where nothing is.
    case cacheElseLoad
    /// Whatever is stored, stale or not, and never the origin.
    case cacheOnly
    /// A new response from the origin, without validators; the answer is stored.
    case reload
    /// The origin is asked in any case, with validators where there are some.
    case revalidate
}

/// Settings of the caching rules.
public struct CachingConfiguration: Sendable, Hashable {
    /// A cache for one user: `private` and answers to `Authorization` may be stored, `s-maxage` and `proxy-revalidate`
    /// do not apply. Default false, a shared cache, since variants are served to everybody.
    public var isPrivate = false
    /// Seconds a 200 stays fresh whose origin says nothing about freshness. Default nil: there is no default lifetime,
    /// since a guess would show old pictures.
    public var defaultMaxAge: Int?
    /// Seconds for which the failure of an origin (no response, or an error without freshness of its own) is remembered
    /// and answered without asking again. Default nil: every request asks.
    public var errorMaxAge: Int?
    /// Failures in a row before `errorMaxAge` applies; retries are within one. Default 1.
    public var errorAttempts = 1
    /// Validations in the background at once, for `stale-while-revalidate`; while so many run, further ones are left to
    /// later requests. Default 16.
    public var backgroundValidations = 16
    /// Response fields that take the place of `Cache-Control` and `Expires` in a shared cache, the first that is valid
    /// wins (RFC 9213 §2.2). Default `CDN-Cache-Control`, since this cache stands before origins as theirs do.
    public var targetedFields = ["CDN-Cache-Control"]

    /// The defaults: shared, no default lifetime.
    public init() {}
}
