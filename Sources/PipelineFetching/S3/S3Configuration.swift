public import HTTPCaching

/// Configures the locations of S3 buckets and the credentials for them: `PipelineConfiguration.s3`, or the `s3`
/// setting. Sources are then `s3://BUCKET/KEY`.
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.s3.store.region = "eu-central-1"
/// configuration.s3.store.credentials = .profile("images")
/// configuration.s3.buckets["public-photos", default: .init()].credentials = .anonymous
/// ```
public struct S3Configuration: Sendable, Hashable {
    /// Configures one S3-compatible store or one bucket: `S3Configuration.store`, an entry of
    /// `S3Configuration.buckets`, or `RemoteConfiguration.store`.
    ///
    /// ```swift
    /// var store = S3Configuration.Store()
    /// store.endpoint = "https://s3.example.org"
    /// store.region = "eu-central-1"
    /// store.credentials = .key(id: "AKIDEXAMPLE", secret: "secret")
    /// ```
    public struct Store: Sendable, Hashable {
        /// The endpoint `https://HOST[:PORT]`. If nil, the default, Amazon's endpoint for the region is used. An
        /// endpoint is trusted, so it may have a private address.
        public var endpoint: String?
        /// The region. If nil, the default, the region is that of `AWS_REGION`, or `us-east-1` if the variable is not
        /// set. If the store names a different region, the request is repeated there once.
        public var region: String?
        /// Whether the bucket is the first segment of the path instead of a part of the host name. If nil, the default,
        /// it is the first segment if `endpoint` is set.
        public var pathStyle: Bool?
        /// How long an object without freshness fields is fresh, in whole seconds. If nil, the default, HTTP's
        /// heuristic freshness applies.
        public var maxAge: Duration?
        /// Additional header fields for every request, which are signed, such as `x-amz-request-payer: requester` for
        /// requester-pays buckets. If nil, the default, no fields are added.
        public var fields: [HeaderField]?
        /// The credentials. If nil, the default, the credentials in the environment are used.
        public var credentials: S3Credentials?

        /// Creates settings for Amazon S3 with the credentials in the environment.
        public init() {}
    }

    /// The settings for buckets that are not in `buckets`.
    public var store = Store()
    /// The settings for individual buckets by name. Values that an entry omits come from `store`.
    public var buckets: [String: Store] = [:]
    /// Whether to request credentials from the instance metadata service (Amazon's IMDSv2). Defaults to false, because
    /// the request takes seconds on machines without such a service.
    public var asksInstance = false

    /// Creates settings for Amazon S3 with the credentials in the environment.
    public init() {}

    /// Returns whether a string is the URL of an endpoint: http or https and a host, with nothing else but an optional
    /// port.
    package static func isEndpoint(_ text: String) -> Bool {
        guard let url = try? SourceURL(text) else { return false }
        return url.path == "/" && url.query == nil && url.userinfo == nil && !text.contains("#")
    }

    /// Returns the settings for a bucket.
    func store(of bucket: String) -> Store {
        guard let own = buckets[bucket] else { return store }
        var merged = Store()
        merged.endpoint = own.endpoint ?? store.endpoint
        merged.region = own.region ?? store.region
        merged.pathStyle = own.pathStyle ?? store.pathStyle
        merged.maxAge = own.maxAge ?? store.maxAge
        merged.fields = own.fields ?? store.fields
        merged.credentials = own.credentials ?? store.credentials
        return merged
    }
}

/// Specifies the credentials for an S3 store: `S3Configuration.Store.credentials`. Descriptions and dumps of this value
/// contain no secrets.
public enum S3Credentials: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// No credentials, because the bucket is public.
    case anonymous
    /// An access key, with a session token if the key is temporary.
    case key(id: String, secret: String, token: String? = nil)
    /// A profile in the shared credentials files (`~/.aws/credentials`).
    case profile(String)

    /// A description without secrets.
    public var description: String { "credentials of a store" }
    /// An empty mirror, so that dumps omit secrets.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The data with which libcurl signs a request (AWS Signature Version 4).
struct RequestSignature: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    var region: String
    var keyID: String
    var secret: String
    var token: String?

    /// A description without secrets.
    var description: String { "signature of \(region)" }
    var customMirror: Mirror { Mirror(self, children: []) }

    /// The SHA-256 of the body, which is also signed. If nil, the default, the request has no body.
    var digest: String?

    /// Additional header fields, which are signed together with the fields of the request.
    var fields: [HeaderField] {
        [HeaderField("x-amz-content-sha256", digest ?? "UNSIGNED-PAYLOAD")]
            + (token.map { [HeaderField("x-amz-security-token", $0)] } ?? [])
    }
}
