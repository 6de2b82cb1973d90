/// How a cache dealt with one request, in the words of RFC 9211.
public struct CacheHandling: Sendable, Hashable {
    /// Why the request went to the origin (RFC 9211 §2.2).
    public enum Forward: String, Sendable, Hashable {
        /// Nothing is stored for the URL.
        case uriMiss = "uri-miss"
        /// Something is stored for the URL, but for other selecting fields.
        case varyMiss = "vary-miss"
        /// Something is stored, but its body is gone.
        case miss
        /// What is stored is stale.
        case stale
        /// What is stored holds a part only.
        case partial
        /// The request asked for it.
        case request
        /// The policy does not use the cache.
        case bypass
        /// The method is one that no cache answers.
        case method
    }

    /// Whether the answer came from what was stored, without asking the origin.
    public var isHit: Bool
    /// Why the origin was asked; nil for a hit.
    public var forward: Forward?
    /// The status the origin answered with, where it is not the answer's own, such as the 304 of a validation.
    public var forwardStatus: Int?
    /// Whether the answer was stored.
    public var isStored: Bool
    /// Whether another request's fetch answered this one too.
    public var isCollapsed: Bool
    /// Seconds of freshness left, negative when stale; nil where nothing was stored.
    public var timeToLive: Int?
    /// The tier a hit came from, `memory` or `disk`, or why something was not stored.
    public var detail: String?

    /// How a request was dealt with.
    public init(
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
