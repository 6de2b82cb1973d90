/// How far a request may use stored responses, and when the origin must be asked.
public enum CachePolicy: String, Sendable, Hashable, CaseIterable {
    /// RFC 9111: fresh responses are reused, stale ones validated. The default.
    case `protocol`
    /// Uses whatever is stored, stale or not, and asks the origin only if nothing is. Stored errors (4xx and 5xx) are
    /// used only while they are fresh.
    case cacheElseLoad
    /// Uses whatever is stored, stale or not, and never asks the origin.
    case cacheOnly
    /// Fetches a new response from the origin, without validators, and stores it.
    case reload
    /// Always asks the origin, with validators if there are any.
    case revalidate
}

/// Settings of the caching rules.
public struct CachingConfiguration: Sendable, Hashable {
    /// Whether the cache serves a single user: `private` responses and those to `Authorization` may be stored, and
    /// `s-maxage` and `proxy-revalidate` do not apply. Default false, since variants are served to everyone.
    public var isPrivate = false
    /// Seconds for which a 200 stays fresh if the origin says nothing about freshness. Default nil: no default
    /// lifetime, since a guess would show outdated pictures.
    public var defaultMaxAge: Int?
    /// Seconds for which an origin's failure (no response, or an error without freshness of its own) is remembered and
    /// answered without asking again; 0 remembers nothing. Default nil: 2 seconds, for variants only, after a 404, 410 or
    /// 5xx and after a 200 that cannot be decoded. That one is remembered for no longer than this, however fresh it is.
    public var errorMaxAge: Int?
    /// What a nil `errorMaxAge` stands for: short, so that a page is whole again soon after its origin.
    package static let usualErrorMaxAge = 2
    /// Consecutive failures before `errorMaxAge` applies; a request with its retries counts once. Default 1.
    public var errorAttempts = 1
    /// Concurrent background validations, for `stale-while-revalidate`; at the limit, further ones are left to later
    /// requests. Default 16.
    public var backgroundValidations = 16
    /// Response fields that replace `Cache-Control` and `Expires` in a shared cache; the first that is valid wins
    /// (RFC 9213 §2.2). Default `CDN-Cache-Control`, since this cache sits in front of origins as CDNs do.
    public var targetedFields = ["CDN-Cache-Control"]

    /// The defaults: shared, no default lifetime.
    public init() {}
}
