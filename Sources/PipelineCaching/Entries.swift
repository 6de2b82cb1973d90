public import HTTPCaching

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
    /// What the body is; nil if that is not known.
    public var media: MediaDescription?
    /// Milliseconds that fetching took.
    public var fetchMilliseconds: Double
    /// The normalised URL that redirects led to; nil if there were none. Validators apply to that URL only.
    public var finalURL: String?

    /// Whether the response is a redirect that was not followed.
    package var isRedirect: Bool {
        [301, 302, 303, 307, 308].contains(response.status) && response.fields.first("location") != nil
    }

    /// The maximum number of records per source, one per selection that its `Vary` led to; the newest are kept.
    static let selectionLimit = 16

    public init(
        source: String, response: StoredResponse, digest: Digest, length: Int, media: MediaDescription?,
        fetchMilliseconds: Double, finalURL: String? = nil
    ) {
        self.source = source
        self.response = response
        self.digest = digest
        self.length = length
        self.media = media
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
    public var mediaType: String
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
        key: String, originalDigest: Digest, digest: Digest, length: Int, mediaType: String, width: Int, height: Int,
        recipe: String, cost: Double, created: Double
    ) {
        self.key = key
        self.originalDigest = originalDigest
        self.digest = digest
        self.length = length
        self.mediaType = mediaType
        self.width = width
        self.height = height
        self.recipe = recipe
        self.cost = cost
        self.created = created
    }
}

/// The content of a body as an index keeps it. The stores do not interpret it.
public struct MediaDescription: Sendable, Hashable {
    /// Media type, such as `image/jpeg`.
    public var type: String
    /// Pixels.
    public var width: Int
    /// Pixels.
    public var height: Int
    /// Further numbers of the caller's, kept in order.
    public var details: [Int]

    public init(type: String, width: Int, height: Int, details: [Int] = []) {
        self.type = type
        self.width = width
        self.height = height
        self.details = details
    }
}

/// Which tiers a request may fill. Reading is governed by the policy.
public struct StorageOptions: OptionSet, Sendable, Hashable {
    /// One bit per tier.
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// Keeps original and record in memory.
    public static let originalsInMemory = StorageOptions(rawValue: 1)
    /// Keeps original and record on disk and in the tiers behind it.
    public static let originalsOnDisk = StorageOptions(rawValue: 2)
    /// Keeps the variant in memory.
    public static let variantsInMemory = StorageOptions(rawValue: 4)
    /// Keeps the variant on disk and in the tiers behind it.
    public static let variantsOnDisk = StorageOptions(rawValue: 8)
    /// Every tier; the default.
    public static let all: StorageOptions = [.originalsInMemory, .originalsOnDisk, .variantsInMemory, .variantsOnDisk]
}
