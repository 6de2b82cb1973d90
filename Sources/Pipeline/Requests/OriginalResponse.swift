public import HTTPCaching
public import PipelineCaching
package import PipelineFetching
public import PipelineSupport
import Variants

/// Requests an original as an HTTP response with status, header fields and body. Use it for a caching proxy, which
/// returns a 404 like any other response. For pictures, use `ImageRequest`.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// var request = OriginalRequest(url: "https://example.org/photo.jpg")
/// request.fields = [HeaderField("Accept-Language", "de")]
/// let response = try await pipeline.original(for: request)
/// print(response.status, response.handling.fieldValue(), response.body.count)
/// ```
public struct OriginalRequest: Sendable {
    /// An absolute http or https URL.
    public var url: String
    /// The request method. Defaults to `GET`.
    ///
    /// A method that may change state is sent to the origin once, with all `fields`, and is never answered from a
    /// cache. If the request succeeds, the stored responses for the URL are invalidated (RFC 9111 §4.4). `CONNECT`,
    /// `TRACE` and `HEAD` are refused. Use the response to a GET to answer HEAD.
    public var method = "GET"
    /// The body to send with methods other than GET. Empty by default.
    public var body: [UInt8] = []
    /// An identifier for the source, used instead of its URL. Defaults to nil.
    public var sourceID: String?
    /// Header fields to send to the origin and to match against `Vary`. The transport drops connection-specific fields.
    /// See `forwardsConditionals` for conditions and ranges.
    public var fields: [HeaderField]
    /// The policy for using stored responses. If nil, the default, the pipeline's policy applies.
    public var policy: CachePolicy?
    /// Whether the `Cache-Control` and `Pragma` fields of the request apply to stored responses (RFC 9111 §5.2.1).
    /// Defaults to false, so that a client's `no-cache` cannot cause work.
    public var honorsDirectives = false
    /// Whether to forward the client's own conditions and range to the origin if they cannot be evaluated with a stored
    /// response. The fields are `If-None-Match`, `If-Modified-Since`, `If-Match`, `If-Unmodified-Since`, `If-Range` and
    /// `Range`.
    ///
    /// If true, a 206, 304, 412 or 416 response is returned unchanged and not stored. A complete response is stored as
    /// usual. If false, the default, these fields never reach the origin. The complete response is fetched, and the
    /// caller applies the conditions and the range.
    public var forwardsConditionals = false
    /// Whether to follow redirects. Defaults to true. The final response is then stored under this URL, for no longer
    /// than the redirects allow. If false, the redirect itself is returned.
    public var followsRedirects = true
    /// See `ImageRequest.maxRedirects`.
    package var maxRedirects: Int?
    /// Called with the origin's interim responses (1xx), before the final response. It is not called for a request that
    /// shares the fetch of another request. Defaults to nil.
    package var onInterim: InterimObserver?
    /// Decides whether the request may contact the origin. Not used for background work. If nil, the default, the
    /// request may contact it.
    package var gate: WorkGate?
    /// The folder that contains the file of a `url` `NAME:PATH`. It is nil, the default, if the source has a different
    /// form.
    package var folder: OpenFolder?
    /// The urgency. Defaults to `normal`.
    public var priority = RequestPriority.normal
    /// The tiers that may store the response. By default, all tiers may store it.
    public var storage = StorageOptions.all
    /// Whether a long body may be returned as a file instead of in memory (`FetchConfiguration.maxBytesInMemory`).
    /// Defaults to false.
    public var acceptsFile = false

    /// Creates a request for a URL.
    public init(url: String, fields: [HeaderField] = []) {
        self.url = url
        self.fields = fields
    }
}

/// Contains the origin's response to an `OriginalRequest`, either stored or just fetched. A proxy sends it to its
/// client with `handling` as the `Cache-Status` field and with `age`, unless it is nil, as the `Age` field.
public struct OriginalResponse: Sendable {
    /// The status as received, 200…999.
    public var status: Int
    /// The end-to-end fields as received, in order and with duplicates. After a 304, they include its updates.
    public var fields: [HeaderField]
    /// The body as received, without decoding its content coding, or an empty array if `file` holds the body.
    public var body: [UInt8]
    /// The body as a file, if it is long and the request accepts a file.
    public var file: SpooledBody?
    /// The time since the origin generated or last validated the response, in whole seconds (RFC 9111 §4.2.3). The
    /// value is nil if the response was not stored before this request. In that case, `fields` contains the origin's
    /// own `Age`, if any.
    public var age: Duration?
    /// How the cache handled the request.
    public var handling: CacheHandling
    /// The time when the response arrived, in Unix seconds. Use it as `Date` if the origin sent none.
    public var responseTime: Double
    /// The stored record of the response, or nil if the response may not be stored.
    package var record: OriginalRecord?
    /// Whether this is a 200 with a picture other than an SVG as its body, regardless of its header fields.
    package var isPicture = false

    package init(
        status: Int, fields: [HeaderField], body: [UInt8], age: Duration?, handling: CacheHandling, responseTime: Double
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
    /// - Parameter body: the bytes, or nil if the body is returned as a file.
    init(_ original: Original, body: [UInt8]?, now: Double, caching: CachingConfiguration) {
        let response = original.record.response
        // A response is a hit if the request was not forwarded, even if the response is stale.
        let isHit = original.forward == nil
        // For this request, a response that another request fetched counts as stored.
        let isNew = original.outcome == .network && !original.isCollapsed
        let hasAge = !isNew && (original.outcome != .network || response.fields.first("age") != nil)
        var handling = CacheHandling(
            isHit: isHit, forward: original.forward, forwardStatus: original.forwardStatus,
            isStored: original.mayStore && (original.outcome == .network || original.outcome == .revalidated),
            isCollapsed: original.isCollapsed)
        if original.mayStore {
            let remaining = Freshness.remaining(of: response, now: now, configuration: caching)
            handling.timeToLive = .seconds(Int(remaining.rounded(.down)))
        }
        handling.detail = isHit ? original.tier?.rawValue ?? "none" : original.refusal
        self.init(
            status: response.status,
            fields: isNew
                ? original.received ?? response.fields
                : Reuse.fields(
                    of: response, wasValidated: original.outcome == .revalidated, configuration: caching),
            body: body ?? [],
            age: hasAge ? .seconds(Age.fieldValue(of: response, now: now)) : nil, handling: handling,
            responseTime: response.responseTime)
        if body == nil, case .file(let file)? = original.body { self.file = file }
        if original.mayStore { record = original.record }
        isPicture = original.record.header.map { $0.format != .svg } ?? false
    }

    /// Creates the response for a hit in a tier, without a body.
    ///
    /// - Parameter record: a fresh record.
    package init(hit record: OriginalRecord, in tier: TierName, now: Double, caching: CachingConfiguration) {
        let remaining = Freshness.remaining(of: record.response, now: now, configuration: caching)
        self.init(
            status: record.response.status,
            fields: Reuse.fields(of: record.response, wasValidated: false, configuration: caching), body: [],
            age: .seconds(Age.fieldValue(of: record.response, now: now)),
            handling: CacheHandling(
                isHit: true, timeToLive: .seconds(Int(remaining.rounded(.down))), detail: tier.description),
            responseTime: record.response.responseTime)
        self.record = record
        isPicture = record.header.map { $0.format != .svg } ?? false
    }
}
