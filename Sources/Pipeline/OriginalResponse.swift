/// Asks for an original as HTTP knows it: status, fields and body, whatever the status, as a caching proxy would.
public struct OriginalRequest: Sendable {
    /// An absolute http or https URL.
    public var url: String
    /// Identifies the source in place of its URL.
    public var sourceID: String?
    /// Fields sent to the origin, on which `Vary` selects. Those of one connection are left out by the transport.
    public var fields: [HeaderField]
    /// How far stored responses are trusted.
    public var policy = CachePolicy.protocol
    /// Whether `Cache-Control` and `Pragma` among `fields` act on the stored response (RFC 9111 §5.2.1). Off by default:
    /// a client's `no-cache` does not force work.
    public var honoursDirectives = false
    /// Urgency; `normal` by default.
    public var priority = RequestPriority.normal
    /// Tiers that may be filled.
    public var storage = StorageOptions.all

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
    /// The body as received, content coding included.
    public var body: [UInt8]
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
