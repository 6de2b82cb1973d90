public import Variants

/// SHA-256 of bytes, as 64 lower-case hexadecimal digits.
public typealias Digest = String

/// The metadata of an original, without its body; a record outlives the body.
public struct OriginalRecord: Sendable, Hashable {
    /// Normalised URL or the caller's source ID.
    public var source: String
    /// Status, fields and times as received.
    public var response: StoredResponse
    /// SHA-256 of the body.
    public var digest: Digest
    /// Bytes of the body.
    public var length: Int
    /// nil if the body is not an image in a known format.
    public var header: ImageHeader?
    /// Milliseconds that fetching took.
    public var fetchMilliseconds: Double
    /// The normalised URL that redirects led to; nil if there were none. Validators apply to that URL only.
    public var finalURL: String?

    /// Whether the response is a redirect that was not followed.
    var isRedirect: Bool {
        [301, 302, 303, 307, 308].contains(response.status) && response.fields.first("location") != nil
    }

    /// The maximum number of records per source, one per selection that its `Vary` led to; the newest are kept.
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
    /// 64 hexadecimal digits: `CacheKey.variant` hashes everything that the body depends on.
    public var key: String
    /// Digest of the original that the variant was made from.
    public var originalDigest: Digest
    /// SHA-256 of the body.
    public var digest: Digest
    /// Bytes of the body.
    public var length: Int
    /// Format of the body.
    public var format: ImageFormat
    /// Width in pixels.
    public var width: Int
    /// Height in pixels.
    public var height: Int
    /// Canonical recipe text, for people who inspect the cache.
    public var recipe: String
    /// CPU milliseconds that rendering it again would take.
    public var cost: Double
    /// Creation time in Unix seconds.
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
