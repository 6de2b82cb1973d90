/// Describes how the cache handled a request, in the terms of RFC 9211. Read it from `OriginalResponse.handling`.
/// `fieldValue(cache:)` returns it as the value of a `Cache-Status` field.
public struct CacheHandling: Sendable, Hashable {
    /// The reason for forwarding the request to the origin (RFC 9211 §2.2).
    public enum Forward: String, Sendable, Hashable {
        /// No response is stored for the URL.
        case uriMiss = "uri-miss"
        /// Responses are stored for the URL, but none of them for the request's selecting fields.
        case varyMiss = "vary-miss"
        /// A response is stored, but its body has been evicted.
        case miss
        /// The stored response is stale.
        case stale
        /// The stored response is incomplete.
        case partial
        /// The request or its policy required contacting the origin.
        case request
        /// The policy bypasses the cache.
        case bypass
        /// Requests with this method are never answered from a cache.
        case method
    }

    /// Whether a stored response was used without contacting the origin.
    public var isHit: Bool
    /// The reason for contacting the origin, or nil if the request was a hit.
    public var forward: Forward?
    /// The status of the origin's response, if it differs from the status of the returned response. An example is the
    /// 304 of a validation.
    public var forwardStatus: Int?
    /// Whether the response was stored.
    public var isStored: Bool
    /// Whether this request shared the fetch of another request (`collapsed` in RFC 9211).
    public var isCollapsed: Bool
    /// The remaining freshness in whole seconds, negative if the response is stale, or nil if the response is not
    /// stored.
    public var timeToLive: Duration?
    /// The tier that answered a hit, such as `memory` or `disk`, or the reason why the response was not stored.
    public var detail: String?

    package init(
        isHit: Bool, forward: Forward? = nil, forwardStatus: Int? = nil, isStored: Bool = false,
        isCollapsed: Bool = false, timeToLive: Duration? = nil, detail: String? = nil
    ) {
        self.isHit = isHit
        self.forward = forward
        self.forwardStatus = forwardStatus
        self.isStored = isStored
        self.isCollapsed = isCollapsed
        self.timeToLive = timeToLive
        self.detail = detail
    }

    /// Returns the member for a `Cache-Status` field, such as `pipeline; hit; ttl=36; detail=memory`.
    ///
    /// - Parameter cache: the name of this cache, a token.
    public func fieldValue(cache: String = "pipeline") -> String {
        var text = cache
        if isHit { text += "; hit" }
        if let forward { text += "; fwd=\(forward.rawValue)" }
        if let forwardStatus { text += "; fwd-status=\(forwardStatus)" }
        if let timeToLive { text += "; ttl=\(timeToLive.components.seconds)" }
        if isStored { text += "; stored" }
        if isCollapsed { text += "; collapsed" }
        if let detail { text += "; detail=\(detail)" }
        return text
    }
}
