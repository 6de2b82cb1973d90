public import HTTPCaching
public import PipelineCaching
package import PipelineFetching
public import PipelineSupport
import Variants

/// A caching proxy's request for an original as HTTP knows it: status, fields and body, whatever the status.
public struct OriginalRequest: Sendable {
    /// An absolute http or https URL.
    public var url: String
    /// `GET`, the default, or a method that may change state: such a request goes to the origin once, with all
    /// `fields`, and only the origin's response answers it. If it succeeds, what is stored for the URL is invalidated
    /// (RFC 9111 §4.4). `CONNECT`, `TRACE` and `HEAD` are refused; use the response to a GET to answer HEAD.
    public var method = "GET"
    /// The body sent with methods other than GET; empty by default.
    public var body: [UInt8] = []
    /// Identifies the source in place of its URL.
    public var sourceID: String?
    /// Fields sent to the origin, and matched against `Vary`. The transport drops connection-specific fields;
    /// conditions and ranges are handled as `forwardsConditionals` says.
    public var fields: [HeaderField]
    /// How far stored responses are trusted; nil, the default, for the pipeline's own policy.
    public var policy: CachePolicy?
    /// Whether `Cache-Control` and `Pragma` among `fields` apply to the stored response (RFC 9111 §5.2.1). Off by
    /// default, so that a client's `no-cache` cannot force work.
    public var honoursDirectives = false
    /// Whether the client's own conditions and range (`If-None-Match`, `If-Modified-Since`, `If-Match`,
    /// `If-Unmodified-Since`, `If-Range`, `Range`) among `fields` are forwarded if no stored response can be used to
    /// evaluate them. A 206, 304, 412 or 416 to them is returned unchanged and not stored; a complete response is stored
    /// as usual. Off by default: they never reach the origin, the whole response is fetched, and the caller applies them.
    public var forwardsConditionals = false
    /// Whether a redirect is followed to the response it leads to, which is then stored under this URL for no longer
    /// than the redirects allow. Otherwise the redirect itself is returned. Default true.
    public var followsRedirects = true
    /// Called with the origin's interim responses (1xx) before the final one; not called for a request that is
    /// coalesced with another's fetch. Default nil.
    package var onInterim: InterimObserver?
    /// Asked before the request contacts the origin in the foreground; nil, the default, permits it.
    package var gate: WorkGate?
    /// The folder below which `url`, `NAME:PATH`, is a file; nil, the default, for other sources.
    package var folder: OpenFolder?
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
    /// End-to-end fields as received, in order, repeats kept; after a 304, as updated by it.
    public var fields: [HeaderField]
    /// The body as received, content coding included; empty if `file` holds it.
    public var body: [UInt8]
    /// The body, if it is long and the request accepts a file.
    public var file: SpooledBody?
    /// Seconds since the origin made or last validated it (RFC 9111 §4.2.3); nil if it was not stored before this
    /// request, in which case its own `Age` field, if any, is among `fields`.
    public var age: Int?
    /// How the cache handled the request.
    public var handling: CacheHandling
    /// Unix seconds when the response arrived; serves as `Date` if the origin sent none.
    public var responseTime: Double
    /// The record it was made from, if that may be stored.
    package var record: OriginalRecord?
    /// Whether the body is that of a 200 and its bytes are a picture's, whatever its fields say.
    package var isPicture = false

    package init(
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
    /// - Parameter body: the bytes; nil if the body is handed over as a file.
    init(_ original: Original, body: [UInt8]?, now: Double, caching: CachingConfiguration) {
        let response = original.record.response
        // A response that was not forwarded is a hit, even if it is stale.
        let isHit = original.forward == nil
        // A response fetched by another request counts as stored for this one.
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
            age: hasAge ? Age.fieldValue(of: response, now: now) : nil, handling: handling,
            responseTime: response.responseTime)
        if body == nil, case .file(let file)? = original.body { self.file = file }
        if original.mayStore { record = original.record }
        isPicture = original.record.header.map { $0.format != .svg } ?? false
    }

    /// The response as a hit of a tier, without its body.
    ///
    /// - Parameter record: fresh.
    package init(hit record: OriginalRecord, in tier: TierName, now: Double, caching: CachingConfiguration) {
        let remaining = Freshness.remaining(of: record.response, now: now, configuration: caching)
        self.init(
            status: record.response.status,
            fields: Reuse.fields(of: record.response, wasValidated: false, configuration: caching), body: [],
            age: Age.fieldValue(of: record.response, now: now),
            handling: CacheHandling(
                isHit: true, timeToLive: Int(remaining.rounded(.down)), detail: tier.description),
            responseTime: record.response.responseTime)
        self.record = record
        isPicture = record.header.map { $0.format != .svg } ?? false
    }
}
