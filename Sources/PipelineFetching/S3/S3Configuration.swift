public import HTTPCaching

/// Where buckets are, and as whom they are asked (setting `s3`).
public struct S3Configuration: Sendable, Hashable {
    /// How one store, or one bucket, is reached.
    public struct Store: Sendable, Hashable {
        /// `https://HOST[:PORT]`; nil, the default, for Amazon's of the region. An endpoint is trusted: it may have a
        /// private address.
        public var endpoint: String?
        /// Nil, the default, for `AWS_REGION`, then `us-east-1`. A store that names another region is asked again there, once.
        public var region: String?
        /// Whether the bucket is the first segment of the path instead of a part of the host's name; nil, the default, for
        /// yes with an endpoint of its own.
        public var pathStyle: Bool?
        /// Seconds for which objects are fresh that say nothing of it themselves; nil, the default, for what HTTP estimates.
        public var maxAge: Int?
        /// Additional fields of every request, which are signed, such as `x-amz-request-payer: requester` for
        /// requester-pays buckets; nil, the default, for none.
        public var fields: [HeaderField]?
        /// Nil, the default, for those of the environment.
        public var credentials: S3Credentials?

        public init() {}
    }

    /// For buckets that are not in `buckets`.
    public var store = Store()
    /// By name; what an entry leaves out is as in `store`.
    public var buckets: [String: Store] = [:]
    /// Whether credentials may be asked of the machine that runs this program (Amazon's IMDSv2). Default false: it takes
    /// seconds where there is no such service.
    public var asksInstance = false

    public init() {}

    /// Whether a text is the URL of an endpoint: http or https, a host, and nothing else.
    package static func isEndpoint(_ text: String) -> Bool {
        guard let url = try? SourceURL(text) else { return false }
        return url.path == "/" && url.query == nil && url.userinfo == nil && !text.contains("#")
    }

    /// What holds for a bucket.
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

/// As whom a store is asked.
public enum S3Credentials: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// No credentials: the bucket is public.
    case anonymous
    /// An access key, with a session token if it is a temporary one.
    case key(id: String, secret: String, token: String? = nil)
    /// A profile of the shared files (`~/.aws/credentials`).
    case profile(String)

    /// Omits the secrets.
    public var description: String { "credentials of a store" }
    /// Omits the secrets.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// What libcurl signs a request with (AWS Signature Version 4).
struct RequestSignature: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    var region: String
    var keyID: String
    var secret: String
    var token: String?

    /// Omits the secrets.
    var description: String { "signature of \(region)" }
    var customMirror: Mirror { Mirror(self, children: []) }

    /// SHA-256 of the body, which is signed too; nil, the default, for requests without one.
    var digest: String?

    /// Fields that are signed with the others.
    var fields: [HeaderField] {
        [HeaderField("x-amz-content-sha256", digest ?? "UNSIGNED-PAYLOAD")]
            + (token.map { [HeaderField("x-amz-security-token", $0)] } ?? [])
    }
}
