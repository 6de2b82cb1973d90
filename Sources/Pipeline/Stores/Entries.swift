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

    public init(
        source: String, response: StoredResponse, digest: Digest, length: Int, header: ImageHeader?,
        fetchMilliseconds: Double
    ) {
        self.source = source
        self.response = response
        self.digest = digest
        self.length = length
        self.header = header
        self.fetchMilliseconds = fetchMilliseconds
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
