/// Gets responses from origins.
public protocol Transport: Sendable {
    /// Fetches one response, redirects followed. Every status but 1xx comes back as a value.
    ///
    /// - Parameter onProgress: called while the body arrives, on a thread that must not be blocked, with the bytes
    ///   received and the length announced, if any.
    func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse

    /// Ends what runs and gives threads back; nothing is fetched afterwards.
    func shutdown() async
}

extension Transport {
    /// Fetches one response without telling of progress.
    public func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchedResponse {
        try await fetch(request, onProgress: nil)
    }
}

/// A request to an origin.
public struct FetchRequest: Sendable, Hashable {
    /// What to fetch.
    public var url: SourceURL
    /// `GET`, the default, or a method that may change things. Such a request is made once, on a connection of its own,
    /// follows no redirect, and has nothing of what `HostSettings` keeps for the origin: who sends it speaks for themselves.
    public var method = "GET"
    /// What is sent with another method than GET; empty by default.
    public var body: [UInt8] = []
    /// Fields to send besides those of the connection, which the transport writes; credentials of the URL are in it,
    /// so that caching rules see `Authorization`.
    public var fields: [HeaderField]
    /// A byte limit for this request alone; nil for the configured one.
    public var byteLimit: Int?
    /// Seconds in total for this request alone; nil for the configured ones.
    public var totalSeconds: Double?
    /// Whether redirects are followed; if not, they come back as values like any other status. Default true.
    public var followsRedirects = true
    /// Whether a long body may come as a file instead of in memory. Default false.
    public var acceptsFile = false
    /// Told of interim responses (1xx but 100 and 101) as they arrive. Default nobody.
    public var onInterim: InterimObserver?
    /// The beginning of the response that another try got; only the rest is asked for.
    var resuming: PartialResponse?

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

/// Told of interim responses, such as 103 Early Hints, before the final one arrives. Equal to itself only.
public final class InterimObserver: Sendable, Hashable {
    /// Takes status and end-to-end fields, on a thread that must not be blocked.
    let report: @Sendable (_ status: Int, _ fields: [HeaderField]) -> Void

    /// An observer that calls `report`.
    public init(_ report: @escaping @Sendable (_ status: Int, _ fields: [HeaderField]) -> Void) {
        self.report = report
    }

    public static func == (a: InterimObserver, b: InterimObserver) -> Bool { a === b }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// A complete response.
public struct FetchedResponse: Sendable, Hashable {
    /// The final status.
    public var status: Int
    /// End-to-end fields in the order received, repeats kept.
    public var fields: [HeaderField]
    /// The body as sent, without transfer coding but with content coding; empty where `file` has it.
    public var body: [UInt8]
    /// The body, where it is long and the request accepts a file.
    public var file: SpooledBody?
    /// Unix seconds when the request that got this response was sent.
    public var requestTime: Double
    /// Unix seconds when its head was complete.
    public var responseTime: Double
    /// Where the response came from, other than the requested URL after redirects.
    public var finalURL: SourceURL
    /// Wall time of the whole fetch, waiting for a slot excluded.
    public var milliseconds: Double
    /// The URLs that redirected, in order, the requested one first.
    public var redirects: [SourceURL]
    /// The responses of `redirects`, in the same order: what they say of caching limits how long the answer may be reused
    /// for the URL that was asked for.
    public var redirectResponses: [StoredResponse] = []
    /// SHA-256 of the body, as 64 lower-case hexadecimal digits, where the transport took it while the body arrived.
    public var digest: String?

    /// A response, as a transport or a test makes it.
    public init(
        status: Int, fields: [HeaderField], body: [UInt8], requestTime: Double, responseTime: Double,
        finalURL: SourceURL, milliseconds: Double = 0, redirects: [SourceURL] = [], digest: String? = nil
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.finalURL = finalURL
        self.milliseconds = milliseconds
        self.redirects = redirects
        self.digest = digest
    }
}
