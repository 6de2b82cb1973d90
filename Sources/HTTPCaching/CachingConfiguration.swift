/// Specifies whether a request may use stored responses, and when the origin must be contacted. Set it for all requests
/// (`PipelineConfiguration.policy`) or for one request (`ImageRequest.policy`).
///
/// ```swift
/// var request = ImageRequest(.url("https://example.org/photo.jpg"))
/// request.policy = .revalidate
/// ```
public enum CachePolicy: String, Sendable, Hashable, CaseIterable {
    /// Follows RFC 9111: fresh responses are reused, and stale responses are validated. This is the default.
    case `protocol`
    /// Uses a stored response, fresh or stale, and contacts the origin only if no response is stored. Stored errors
    /// (4xx and 5xx) are used only while they are fresh.
    case cacheElseLoad
    /// Uses a stored response, fresh or stale, and never contacts the origin.
    case cacheOnly
    /// Fetches a new response from the origin, without validators, and stores it.
    case reload
    /// Always contacts the origin, with validators if there are any.
    case revalidate
}

/// Configures HTTP caching: shared or private cache, and lifetimes for responses that do not declare their freshness
/// (`PipelineConfiguration.caching`).
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.caching.defaultMaxAge = .seconds(3600)
/// configuration.caching.errorMaxAge = .seconds(10)
/// ```
public struct CachingConfiguration: Sendable, Hashable {
    /// Whether the cache serves a single user. Defaults to false, because variants are served to everyone.
    ///
    /// A private cache may store `private` responses and responses to requests with `Authorization`. It ignores
    /// `s-maxage` and `proxy-revalidate`.
    public var isPrivate = false
    /// How long a 200 response stays fresh if the origin does not declare its freshness. If nil, the default, such a
    /// response has no lifetime of its own, because a guess could show outdated pictures.
    public var defaultMaxAge: Duration?
    /// How long a remembered failure of an origin answers further requests. A failure is a missing response, or an
    /// error response that declares no freshness. If zero, failures are not remembered.
    ///
    /// If nil, the default, failures are remembered for 2 seconds and only for variants. They include a 404, 410 or
    /// 5xx, and a 200 that cannot be decoded. Such a 200 is remembered for no longer than this, even if it is fresh for
    /// longer.
    public var errorMaxAge: Duration?
    /// The lifetime of failures if `errorMaxAge` is nil. It is short, so that a page recovers soon after its origin.
    package static let usualErrorMaxAge = Duration.seconds(2)
    /// The number of consecutive failures after which `errorMaxAge` applies. A request and its retries count as one.
    /// Defaults to 1.
    public var errorAttempts = 1
    /// The maximum number of concurrent background validations (`stale-while-revalidate`). At the limit, validations
    /// are left to later requests. Defaults to 16.
    public var maxConcurrentValidations = 16
    /// Response fields that replace `Cache-Control` and `Expires` in a shared cache. The first valid field takes
    /// precedence (RFC 9213 §2.2). Defaults to `CDN-Cache-Control`, because this cache sits in front of origins like a
    /// CDN.
    public var targetedFields = ["CDN-Cache-Control"]

    /// Creates a configuration for a shared cache with the default settings.
    public init() {}
}
