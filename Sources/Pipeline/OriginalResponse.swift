/// Asks for an original as HTTP knows it: status, fields and body, whatever the status, as a caching proxy would.
public struct OriginalRequest: Sendable {
    /// An absolute http or https URL.
    public var url: String
    /// `GET`, the default, or a method that may change things: such a request goes to the origin once, with every one of
    /// `fields`, is answered by it alone, and what is stored of the URL is invalidated when it succeeds (RFC 9111 §4.4).
    /// `CONNECT`, `TRACE` and `HEAD` are refused; what GET brings answers HEAD too.
    public var method = "GET"
    /// What is sent with another method than GET; empty by default.
    public var body: [UInt8] = []
    /// Identifies the source in place of its URL.
    public var sourceID: String?
    /// Fields sent to the origin, on which `Vary` selects. Those of one connection are left out by the transport,
    /// conditions and ranges as `forwardsConditionals` says.
    public var fields: [HeaderField]
    /// How far stored responses are trusted.
    public var policy = CachePolicy.protocol
    /// Whether `Cache-Control` and `Pragma` among `fields` act on the stored response (RFC 9111 §5.2.1). Off by default:
    /// a client's `no-cache` does not force work.
    public var honoursDirectives = false
    /// Whether the client's own conditions and range (`If-None-Match`, `If-Modified-Since`, `If-Match`,
    /// `If-Unmodified-Since`, `If-Range`, `Range`) among `fields` are sent on where nothing is stored that they could be
    /// judged by. Their 206, 304, 412 or 416 comes back as it is and is not stored; a whole answer is stored as usual. Off
    /// by default: they never reach the origin, the whole response is fetched, and they are for the caller to apply.
    public var forwardsConditionals = false
    /// Whether a redirect is followed to the response it leads to, which is then stored under this URL for no longer than
    /// the redirects allow. Otherwise a redirect is answered as it is. Default true.
    public var followsRedirects = true
    /// Told of interim responses of the origin (1xx) on the way to the final one; a request that joins another's fetch is
    /// told of none. Default nobody.
    public var onInterim: InterimObserver?
    /// Urgency; `normal` by default.
    public var priority = RequestPriority.normal
    /// Tiers that may be filled.
    public var storage = StorageOptions.all
    /// Whether a long body may come as a file instead of in memory (`FetchConfiguration.spoolBytes`). Default false.
    public var acceptsFile = false

    /// A request for `url`.
    public init(url: String, fields: [HeaderField] = []) {
        self.url = url
        self.fields = fields
    }
}

/// A stored or just fetched response of an origin.
public struct OriginalResponse: Sendable {
    /// The status as received, 200…999.
    public var status: Int
    /// End-to-end fields as received, in order, repeats kept; after a 304 those it freshened.
    public var fields: [HeaderField]
    /// The body as received, content coding included; empty where `file` has it.
    public var body: [UInt8]
    /// The body, where it is long and the request accepts a file.
    public var file: SpooledBody?
    /// Seconds since the origin made or last validated it (RFC 9111 §4.2.3); nil for what was not stored before this
    /// request, whose own `Age` field, if any, is among `fields`.
    public var age: Int?
    /// Hit or forwarded, stored, collapsed.
    public var handling: CacheHandling
    /// Unix seconds when the response arrived, for a `Date` where the origin sent none.
    public var responseTime: Double

    /// A response, as the pipeline or a test makes it.
    public init(
        status: Int, fields: [HeaderField], body: [UInt8], age: Int?, handling: CacheHandling, responseTime: Double
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.age = age
        self.handling = handling
        self.responseTime = responseTime
    }
}

extension OriginalResponse {
    /// - Parameter body: the bytes, where they are not to come as a file.
    init(_ original: Original, body: [UInt8]?, now: Double, caching: CachingConfiguration) {
        let response = original.record.response
        // What was not forwarded was a hit, also when it was stale.
        let isHit = original.forward == nil
        // What another request got is a stored response to this one.
        let isNew = original.outcome == .network && !original.isCollapsed
        let hasAge = !isNew && (original.outcome != .network || response.fields.first("age") != nil)
        var handling = CacheHandling(
            isHit: isHit, forward: original.forward, forwardStatus: original.forwardStatus,
            isStored: original.mayStore && (original.outcome == .network || original.outcome == .revalidated),
            isCollapsed: original.isCollapsed)
        if original.mayStore {
            let remaining = Freshness.remaining(of: response, now: now, configuration: caching)
            handling.timeToLive = Int(remaining.rounded(.down))
        }
        handling.detail = isHit ? original.tier.rawValue : original.refusal
        self.init(
            status: response.status,
            fields: isNew
                ? original.received ?? response.fields
                : Reuse.fields(
                    of: response, wasValidated: original.outcome == .revalidated, configuration: caching),
            body: body ?? [],
            age: hasAge ? Int(Age.current(of: response, now: now)) : nil, handling: handling,
            responseTime: response.responseTime)
        if body == nil, case .file(let file)? = original.body { self.file = file }
    }
}
