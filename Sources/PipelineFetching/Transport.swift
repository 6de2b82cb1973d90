public import HTTPCaching
public import PipelineSupport

/// Fetches the originals of one scheme: http and https, files, or a scheme that a program adds
/// (`PipelineConfiguration.transports`). To supply originals from a program's own storage, an `OriginalProvider` is
/// simpler.
///
/// ```swift
/// struct Archive: Transport {
///     func fetch(
///         _ request: FetchRequest, onProgress: (@Sendable (Int, Int?) -> Void)?
///     ) async throws(FetchError) -> FetchedResponse {
///         FetchedResponse(to: request, fields: [HeaderField("Cache-Control", "max-age=60")], body: [0xFF, 0xD8, 0xFF])
///     }
///     func shutdown() async {}
/// }
/// var configuration = PipelineConfiguration()
/// configuration.transports["archive"] = Archive()
/// ```
///
/// A transport responds like an HTTP origin: with a status, header fields that say how long the response is fresh (RFC
/// 9111), and an entity tag for revalidation. Any task may make any call at any time. The task is cancelled once no
/// caller is waiting for the response. `TransportConformance` checks an implementation.
public protocol Transport: Sendable {
    /// Whether originals are available locally, so that fetching them costs nothing worth saving. Defaults to false.
    ///
    /// The pipeline calls such a transport for every request. The transport responds with 304 if the original still has
    /// the stored entity tag. Policies, freshness and remembered failures do not apply, request fields do not affect
    /// the response, and no body is stored.
    var isLocal: Bool { get }

    /// Fetches one response, following redirects. Every status except 1xx is returned as a value, such as 404 or 410 if
    /// the original does not exist, and 304 if the request's `If-None-Match` contains its entity tag.
    ///
    /// Throws `missing`, `tooLarge` if the body exceeds `maxBytes`, `cancelled`, or another code if the origin failed.
    ///
    /// - Parameter onProgress: a closure that is called while the body arrives, on a thread that must not be blocked,
    ///   with the number of bytes received and the announced length, if any.
    func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse

    /// Cancels running fetches and stops the threads. Later fetches fail. It may be called more than once.
    func shutdown() async
}

extension Transport {
    /// False.
    public var isLocal: Bool { false }

    /// Whether records and originals are looked up and stored, rather than only variants.
    package var keepsRecords: Bool { !(self is BytesTransport) }

    package func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchedResponse {
        try await fetch(request, onProgress: nil)
    }
}

/// A request for one original, which a `Transport` receives. The `willSend` hook may change its header fields:
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.willSend = { request in
///     guard request.url.host == "images.example.org" else { return }
///     request.fields.append(HeaderField("X-Tenant", "17"))
/// }
/// ```
public struct FetchRequest: Sendable, Hashable {
    /// The source in normal form.
    public var url: SourceURL
    /// The method: `GET`, the default, or a method that may change state. A request with such a method is sent only
    /// once, on a separate connection. It follows no redirects and gets no fields from `HostSettings`, so the caller
    /// supplies credentials.
    public var method = "GET"
    /// The request body, sent with methods other than GET. Empty by default.
    public var body: [UInt8] = []
    /// The header fields to send, in addition to the connection fields that the transport writes. They include
    /// credentials from the URL, so that the caching rules see `Authorization`.
    public var fields: [HeaderField]
    /// Header fields with the trace context. They are sent only to origins whose `HostSettings` enable them. Empty by
    /// default.
    package var traceFields: [HeaderField] = []
    /// The maximum size of the body in bytes, which applies only to this request. If nil, the configured limit applies.
    public var maxBytes: Int?
    /// The total time, which applies only to this request. If nil, the configured limit applies.
    public var timeout: Duration?
    /// Whether redirects are followed. If not, they are returned as values like any other status. Defaults to true.
    package var followsRedirects = true
    /// The maximum number of redirects, if it is lower than the configured number. Defaults to nil.
    package var maxRedirects: Int?
    package var acceptsFile = false
    /// Whether the request's conditions come from a client rather than from a stored response. Defaults to false.
    package var hasForeignCondition = false
    /// Called with interim responses (1xx except 100 and 101) as they arrive. Defaults to nil.
    package var onInterim: InterimObserver?
    /// Called before each request to the origin of `url`. Defaults to nil.
    package var willSend: RequestHook?
    /// The data for signing the request. If nil, the default, the request is not signed.
    var signature: RequestSignature?
    /// The source that `url` was derived from, if different. Policy applies to this source.
    var source: SourceURL?
    /// Whether the settings name the host, so that it may have a private address. Defaults to false.
    var isTrusted = false
    /// Whether the request goes to an object store. A PUT may then be repeated, and a 500 is retried. Defaults to
    /// false.
    var isToStore = false
    /// The beginning of the response, received by an earlier attempt. The request is only for the rest.
    var resuming: PartialResponse?
    /// The redirects that an earlier attempt followed. The request goes directly to where they led.
    var followed: FollowedRedirects?

    /// Creates a request for `url`. Credentials in the URL become an `Authorization` field, unless `fields` contains
    /// one.
    public init(url: SourceURL, fields: [HeaderField] = [], maxBytes: Int? = nil, timeout: Duration? = nil) {
        self.url = url
        self.fields = fields
        if fields.first("authorization") == nil, let authorization = url.authorization {
            self.fields.append(authorization)
        }
        self.maxBytes = maxBytes
        self.timeout = timeout
    }
}

/// The redirects followed so far. A retry continues at the last one, so that it repeats one request instead of all of
/// them.
struct FollowedRedirects: Sendable, Hashable {
    /// The URL to request next.
    var url: SourceURL
    /// The URLs that redirected, in order, beginning with the requested URL.
    var urls: [SourceURL] = []
    /// Their responses, in the same order.
    var responses: [StoredResponse] = []

    /// Whether a redirect has led to a different origin, even if a later one led back.
    var hasLeftOrigin: Bool { urls.contains { $0.origin != url.origin } }
}

/// Receives interim responses, such as 103 Early Hints, before the final response arrives. Instances are equal only to
/// themselves.
package final class InterimObserver: Sendable, Hashable {
    /// Called with the status and the end-to-end header fields, on a thread that must not be blocked.
    let report: @Sendable (_ status: Int, _ fields: [HeaderField]) -> Void

    package init(_ report: @escaping @Sendable (_ status: Int, _ fields: [HeaderField]) -> Void) {
        self.report = report
    }

    package static func == (a: InterimObserver, b: InterimObserver) -> Bool { a === b }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Completes a request just before it is sent. Instances are equal only to themselves.
package final class RequestHook: Sendable, Hashable {
    let complete: @Sendable (inout FetchRequest) async throws -> Void

    package init(_ complete: @escaping @Sendable (inout FetchRequest) async throws -> Void) { self.complete = complete }

    package static func == (a: RequestHook, b: RequestHook) -> Bool { a === b }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// A complete response, which a `Transport` returns. Create it with `init(to:status:fields:body:)`, then set other
/// properties.
public struct FetchedResponse: Sendable, Hashable {
    /// The status, 200…999.
    public var status: Int
    /// The end-to-end header fields in the order received, including repeated fields.
    public var fields: [HeaderField]
    /// The body as sent, with any content coding but without transfer coding, or an empty array if the body is in
    /// `file`.
    public var body: [UInt8]
    /// The body, if it is in a file. The file no longer changes.
    public var file: SpooledBody?
    /// The time when the request was sent, in Unix seconds.
    public var requestTime: Double
    /// The time when the response header was complete, in Unix seconds.
    public var responseTime: Double
    /// The URL that the response came from. It differs from the requested URL after redirects.
    public var finalURL: SourceURL
    /// The wall-clock time of the complete fetch in milliseconds, excluding the wait for a slot.
    package var milliseconds = 0.0
    /// The URLs that redirected, in order, beginning with the requested URL.
    package var redirects: [SourceURL] = []
    /// The responses of `redirects`, in the same order. Their caching directives limit how long this response may be
    /// reused for the requested URL.
    package var redirectResponses: [StoredResponse] = []
    /// The SHA-256 of the body as 64 lower-case hexadecimal digits, if the transport computed it while the body
    /// arrived.
    package var digest: String?
    /// Details of an error that the status does not show, and how to fix the error, as part of a sentence.
    package var problem: String?
}

extension FetchedResponse {
    /// Creates a response that has just arrived, without redirects.
    public init(to request: FetchRequest, status: Int = 200, fields: [HeaderField] = [], body: [UInt8] = []) {
        let now = SystemClock.unix.seconds
        self.init(
            status: status, fields: fields, body: body, requestTime: now, responseTime: now, finalURL: request.url)
    }
}
