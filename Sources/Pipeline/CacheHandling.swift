/// How a cache dealt with one request, in the terms of RFC 9211.
public struct CacheHandling: Sendable, Hashable {
    /// Why the request went to the origin (RFC 9211 §2.2).
    public enum Forward: String, Sendable, Hashable {
        /// Nothing is stored for the URL.
        case uriMiss = "uri-miss"
        /// Responses are stored for the URL, but none with the request's selecting fields.
        case varyMiss = "vary-miss"
        /// A response is stored, but its body is gone.
        case miss
        /// The stored response is stale.
        case stale
        /// Only part of the response is stored.
        case partial
        /// The request, or its policy, required contacting the origin.
        case request
        /// The policy does not use the cache.
        case bypass
        /// Requests with this method are not answered from a cache.
        case method
    }

    /// Whether a stored response was used without contacting the origin.
    public var isHit: Bool
    /// Why the origin was asked; nil for a hit.
    public var forward: Forward?
    /// The origin's status, if it is not the answer's own, such as the 304 of a validation.
    public var forwardStatus: Int?
    /// Whether the answer was stored.
    public var isStored: Bool
    /// Whether this request was coalesced with another's fetch (RFC 9211's `collapsed`).
    public var isCollapsed: Bool
    /// Seconds of freshness left, negative when stale; nil if nothing was stored.
    public var timeToLive: Int?
    /// The tier a hit came from, `memory` or `disk`, or why something was not stored.
    public var detail: String?

    package init(
        isHit: Bool, forward: Forward? = nil, forwardStatus: Int? = nil, isStored: Bool = false,
        isCollapsed: Bool = false, timeToLive: Int? = nil, detail: String? = nil
    ) {
        self.isHit = isHit
        self.forward = forward
        self.forwardStatus = forwardStatus
        self.isStored = isStored
        self.isCollapsed = isCollapsed
        self.timeToLive = timeToLive
        self.detail = detail
    }

    /// The member of a `Cache-Status` field, for example `pipeline; hit; ttl=36; detail=memory`.
    ///
    /// - Parameter cache: the name of this cache, a token.
    public func fieldValue(cache: String = "pipeline") -> String {
        var text = cache
        if isHit { text += "; hit" }
        if let forward { text += "; fwd=\(forward.rawValue)" }
        if let forwardStatus { text += "; fwd-status=\(forwardStatus)" }
        if let timeToLive { text += "; ttl=\(timeToLive)" }
        if isStored { text += "; stored" }
        if isCollapsed { text += "; collapsed" }
        if let detail { text += "; detail=\(detail)" }
        return text
    }
}
