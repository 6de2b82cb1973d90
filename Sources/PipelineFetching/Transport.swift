public import HTTPCaching
public import PipelineSupport

/// Fetches the originals of one scheme: http and https, files, or a program's own (`PipelineConfiguration.transports`).
///
/// It answers as an HTTP origin does: with a status, fields that say how long the answer is fresh (RFC 9111), and an
/// entity tag by which it may be asked again. Any task may make any call at any time. The task is cancelled if no caller waits
/// for the answer any more. `TransportConformance` checks an implementation.
public protocol Transport: Sendable {
    /// Whether originals are at hand, so that asking for one costs nothing worth saving; false by default.
    ///
    /// Such a transport is asked by every request, and what has the stored entity tag answers 304. Neither policies and
    /// freshness nor remembered failures apply, no request field changes the answer, and no body is stored.
    var isLocal: Bool { get }
    /// Whether anything is to be looked up and stored of an original but its variants; true by default.
    var keepsRecords: Bool { get }

    /// Fetches one response, following redirects. Every status except 1xx is returned as a value: 404 or 410 if there is
    /// no such original, 304 if the request's `If-None-Match` names its entity tag.
    ///
    /// Throws `missing`, `tooLarge` beyond `byteLimit`, `cancelled`, or what else stands for an origin that failed.
    ///
    /// - Parameter onProgress: called while the body arrives, on a thread that must not be blocked, with the bytes
    ///   received and the length announced, if any.
    func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse

    /// Cancels what is running and stops the threads; nothing is fetched afterwards. May be called more than once.
    func shutdown() async
}

extension Transport {
    public var isLocal: Bool { false }
    public var keepsRecords: Bool { true }

    package func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchedResponse {
        try await fetch(request, onProgress: nil)
    }
}

/// What is to be fetched.
public struct FetchRequest: Sendable, Hashable {
    /// The source, in normal form.
    public var url: SourceURL
    /// `GET`, the default, or a method that may change state. Such a request is made once, on a connection of its own,
    /// follows no redirect, and gets no fields from `HostSettings`: the caller supplies credentials.
    public var method = "GET"
    /// Sent with methods other than GET; empty by default.
    public var body: [UInt8] = []
    /// Fields to send besides connection fields, which the transport writes. Credentials of the URL are included, so
    /// that caching rules see `Authorization`.
    public var fields: [HeaderField]
    /// Fields with the trace context, sent only to origins whose `HostSettings` ask for it; empty by default.
    package var traceFields: [HeaderField] = []
    /// A byte limit for this request alone; nil uses the configured one.
    public var byteLimit: Int?
    /// Seconds in total for this request alone; nil uses the configured limit.
    public var totalSeconds: Double?
    /// Whether redirects are followed; if not, they come back as values like any other status. Default true.
    package var followsRedirects = true
    package var acceptsFile = false
    /// Whether its conditions are those of a client, and not made of what is stored. Default false.
    package var hasForeignCondition = false
    /// Called with interim responses (1xx except 100 and 101) as they arrive. Default nil.
    package var onInterim: InterimObserver?
    /// What to sign the request with; nil, the default, for nothing.
    var signature: RequestSignature?
    /// The source that `url` was made of, if it is another: policy judges that one.
    var source: SourceURL?
    /// Whether the settings name the host, so that its address may be a private one. Default false.
    var isTrusted = false
    /// Whether it goes to an object store, where a PUT may be repeated and a 500 is worth another attempt. Default false.
    var isToStore = false
    /// The beginning of the response that an earlier attempt received; only the rest is requested.
    var resuming: PartialResponse?
    /// The redirects that an earlier attempt followed; the origin is asked where they led.
    var followed: FollowedRedirects?

    /// A request for `url`. Credentials in the URL become `Authorization` unless `fields` has one.
    public init(url: SourceURL, fields: [HeaderField] = [], byteLimit: Int? = nil, totalSeconds: Double? = nil) {
        self.url = url
        self.fields = fields
        if fields.first("authorization") == nil, let authorization = url.authorization {
            self.fields.append(authorization)
        }
        self.byteLimit = byteLimit
        self.totalSeconds = totalSeconds
    }
}

/// Redirects followed so far. A retry goes on where they led, so that it repeats one request instead of all.
struct FollowedRedirects: Sendable, Hashable {
    /// The URL to request next.
    var url: SourceURL
    /// The URLs that redirected, in order, the requested one first.
    var urls: [SourceURL] = []
    /// Their responses, in the same order.
    var responses: [StoredResponse] = []

    /// Whether they have led to another origin, even if they came back.
    var hasLeftOrigin: Bool { urls.contains { $0.origin != url.origin } }
}

/// Receives interim responses, such as 103 Early Hints, before the final one arrives. Equal to itself only.
package final class InterimObserver: Sendable, Hashable {
    /// Called with status and end-to-end fields, on a thread that must not be blocked.
    let report: @Sendable (_ status: Int, _ fields: [HeaderField]) -> Void

    package init(_ report: @escaping @Sendable (_ status: Int, _ fields: [HeaderField]) -> Void) {
        self.report = report
    }

    package static func == (a: InterimObserver, b: InterimObserver) -> Bool { a === b }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// A complete response.
public struct FetchedResponse: Sendable, Hashable {
    /// 200…999.
    public var status: Int
    /// End-to-end fields in the order received, repeats kept.
    public var fields: [HeaderField]
    /// The body as sent, without transfer coding but with content coding; empty if `file` holds it.
    public var body: [UInt8]
    /// The body, if it is in a file that no longer changes.
    public var file: SpooledBody?
    /// Unix seconds when the request that got this response was sent.
    public var requestTime: Double
    /// Unix seconds when its head was complete.
    public var responseTime: Double
    /// The URL the response came from; after redirects it is not the requested one.
    public var finalURL: SourceURL
    /// Wall time of the whole fetch, waiting for a slot excluded.
    package var milliseconds = 0.0
    /// The URLs that redirected, in order, the requested one first.
    package var redirects: [SourceURL] = []
    /// The responses of `redirects`, in the same order: what they say about caching limits how long the answer may be
    /// reused for the requested URL.
    package var redirectResponses: [StoredResponse] = []
    /// SHA-256 of the body, as 64 lower-case hexadecimal digits, if the transport computed it while the body arrived.
    package var digest: String?
    /// What the transport knows of an error that the status does not say, and what would help, as a part of a sentence.
    package var problem: String?
}

extension FetchedResponse {
    /// A response that has arrived now, without redirects.
    public init(to request: FetchRequest, status: Int = 200, fields: [HeaderField] = [], body: [UInt8] = []) {
        let now = SystemClock.unix.seconds
        self.init(
            status: status, fields: fields, body: body, requestTime: now, responseTime: now, finalURL: request.url)
    }
}
