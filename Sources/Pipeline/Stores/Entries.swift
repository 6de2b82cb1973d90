public import Variants

/// SHA-256 of bytes, as 64 lower-case hexadecimal digits.
public typealias Digest = String

/// What is remembered of an original apart from its body; it outlives the body.
public struct OriginalRecord: Sendable, Hashable {
    /// Normalised URL or the caller's source ID.
    public var source: String
    /// Status, fields and times as received.
    public var response: StoredResponse
    /// SHA-256 of the body.
    public var digest: Digest
    /// Bytes of the body.
    public var length: Int
    /// nil when the body is no image we know.
    public var header: ImageHeader?
    /// Milliseconds that fetching took.
    public var fetchMilliseconds: Double
    /// Where redirects led, normalised; nil where there were none. Validators speak of that URL alone.
    public var finalURL: String?

    /// Whether it is a redirect that was not followed.
    var isRedirect: Bool {
        [301, 302, 303, 307, 308].contains(response.status) && response.fields.first("location") != nil
    }

    /// Records kept of one source: the most recent selections that its `Vary` has led to.
    static let selectionLimit = 16

    public init(
        source: String, response: StoredResponse, digest: Digest, length: Int, header: ImageHeader?,
        fetchMilliseconds: Double, finalURL: String? = nil
    ) {
        self.source = source
        self.response = response
        self.digest = digest
        self.length = length
        self.header = header
        self.fetchMilliseconds = fetchMilliseconds
        self.finalURL = finalURL
    }
}

/// A stored variant without its body.
public struct VariantEntry: Sendable, Hashable {
    /// 64 hexadecimal digits (design §3).
    public var key: String
    /// Digest of the original it was made from, and of its own body.
    public var originalDigest: Digest
    /// SHA-256 of the body.
    public var digest: Digest
    /// Bytes of the body.
    public var length: Int
    /// Format of the body.
    public var format: ImageFormat
    /// Pixels.
    public var width: Int
    /// Pixels.
    public var height: Int
    /// Canonical recipe text, for people who look at the cache.
    public var recipe: String
    /// CPU milliseconds to make it again.
    public var cost: Double
    /// Unix seconds.
    public var created: Double

    public init(
        key: String, originalDigest: Digest, digest: Digest, length: Int, format: ImageFormat, width: Int, height: Int,
        recipe: String, cost: Double, created: Double
    ) {
        self.key = key
        self.originalDigest = originalDigest
        self.digest = digest
        self.length = length
        self.format = format
        self.width = width
        self.height = height
        self.recipe = recipe
        self.cost = cost
        self.created = created
    }
}
