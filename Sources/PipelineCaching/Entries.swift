public import HTTPCaching
import PipelineSupport

/// Describes a stored original: the origin's response, and the digest, length and format of its body. A record outlives
/// the body, so that a 304 can still validate variants.
public struct OriginalRecord: Sendable, Hashable, Codable {
    /// The normalized URL, or the caller's source ID.
    public var source: String
    /// The status, header fields and times as received.
    public var response: StoredResponse
    /// The SHA-256 of the body as 64 lower-case hexadecimal digits.
    public var digest: String
    /// The length of the body in bytes.
    public var length: Int
    /// The format and dimensions of the body, or nil if they are unknown.
    public var media: MediaDescription?
    /// The time that fetching took, in milliseconds.
    public var fetchMilliseconds: Double
    /// The normalized URL that redirects led to, or nil if there were no redirects. Validators apply to that URL only.
    public var finalURL: String?
    /// Whether the record is a new 200 response that is stored in addition to the record of the picture that it may
    /// replace, until a variant of it has been rendered. Defaults to false.
    public var isProvisional = false

    /// Whether the response is a redirect that was not followed.
    package var isRedirect: Bool {
        [301, 302, 303, 307, 308].contains(response.status) && response.fields.first("location") != nil
    }

    /// Identifies a record among the records of its source. A source has one record per selection.
    package struct Selection: Sendable, Hashable {
        /// The request fields that `Vary` names.
        package var fields: [String: String?]
        package var isProvisional: Bool

        package init(_ fields: [String: String?] = [:], isProvisional: Bool = false) {
            self.fields = fields
            self.isProvisional = isProvisional
        }
    }

    package var selection: Selection { Selection(response.selecting, isProvisional: isProvisional) }

    /// The name that earlier versions added to the selecting fields of provisional records.
    static let formerMark = "not-decoded-yet"

    /// Returns whether the records have the same source, belong to requests that its `Vary` does not distinguish, and
    /// are either both provisional or both not provisional. A tier keeps only one such record.
    public func hasSameSelection(as other: OriginalRecord) -> Bool {
        ByteString(source) == ByteString(other.source) && selection == other.selection
    }

    /// The maximum number of records per source. There is one record for each selection that its `Vary` has led to. The
    /// newest records are kept.
    static let selectionLimit = 16

    /// Creates a record. `fetchMilliseconds` is the time that fetching took.
    public init(
        source: String, response: StoredResponse, digest: String, length: Int, media: MediaDescription?,
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

    /// Decodes a record. Records that an earlier version encoded have no `isProvisional`.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        source = try members.decode(String.self, forKey: .source)
        response = try members.decode(StoredResponse.self, forKey: .response)
        digest = try members.decode(String.self, forKey: .digest)
        length = try members.decode(Int.self, forKey: .length)
        media = try members.decodeIfPresent(MediaDescription.self, forKey: .media)
        fetchMilliseconds = try members.decode(Double.self, forKey: .fetchMilliseconds)
        finalURL = try members.decodeIfPresent(String.self, forKey: .finalURL)
        let isMarked = response.selecting.removeValue(forKey: Self.formerMark) != nil
        isProvisional = try members.decodeIfPresent(Bool.self, forKey: .isProvisional) ?? isMarked
    }
}

/// Describes a stored variant: its key, the original that it was rendered from, its format and size. The body is stored
/// with it, but is not part of this value.
public struct VariantEntry: Sendable, Hashable, Codable {
    /// The key, which consists of 64 hexadecimal digits. `CacheKey.variant` hashes everything that the body depends on.
    public var key: String
    /// The digest of the original that the variant was rendered from.
    public var originalDigest: String
    /// The SHA-256 of the body.
    public var digest: String
    /// The length of the body in bytes.
    public var length: Int
    /// The media type of the body.
    public var mediaType: String
    /// The width in pixels.
    public var width: Int
    /// The height in pixels.
    public var height: Int
    /// The canonical recipe, for people who inspect the cache.
    public var recipe: String
    /// The CPU time that rendering the variant again would take, in milliseconds.
    public var cost: Double
    /// The time of creation in Unix seconds.
    public var created: Double
    /// The length in bytes of the first version, if a second pass has replaced it or has found no smaller version.
    /// Otherwise nil.
    public var firstLength: Int?

    /// Creates an entry. `cost` is in milliseconds of CPU time, and `created` in Unix seconds.
    public init(
        key: String, originalDigest: String, digest: String, length: Int, mediaType: String, width: Int, height: Int,
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

/// The form of a variant's media type in tiers. An earlier version of this program does not know the type of a variant
/// with a second pass, and treats the variant as missing.
extension VariantEntry {
    private static let firstLengthParameter = "; first="

    /// The media type, with the length of the first version as a parameter, such as `image/avif; first=15000`.
    var storedType: String { firstLength.map { "\(mediaType)\(Self.firstLengthParameter)\($0)" } ?? mediaType }

    /// Returns the entry with its media type and `firstLength` from the stored form.
    func with(storedType text: String) -> VariantEntry {
        var entry = self
        let parts = text.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let length = Int(parts[1].dropFirst(Self.firstLengthParameter.utf8.count - 1)),
            length > 0, text == "\(parts[0])\(Self.firstLengthParameter)\(length)"
        else {
            entry.mediaType = text
            return entry
        }
        (entry.mediaType, entry.firstLength) = (String(parts[0]), length)
        return entry
    }
}

/// Describes the picture in a body for the index of a tier: media type, size and further numbers. The tiers store the
/// description and do not interpret it.
public struct MediaDescription: Sendable, Hashable, Codable {
    /// The media type, such as `image/jpeg`.
    public var type: String
    /// The width in pixels.
    public var width: Int
    /// The height in pixels.
    public var height: Int
    /// Additional numbers that the caller defines, kept in order.
    public var details: [Int]

    /// Creates a description. The size is in pixels.
    public init(type: String, width: Int, height: Int, details: [Int] = []) {
        self.type = type
        self.width = width
        self.height = height
        self.details = details
    }
}

/// Specifies which tiers may store the results of a request (`ImageRequest.storage`). An empty set stores nothing.
/// `ImageRequest.policy` specifies whether stored entries are used.
///
/// ```swift
/// var request = ImageRequest(.file("/srv/photos/1.jpg"), recipe: .thumbnail(300))
/// request.storage = [.variantsInMemory, .variantsOnDisk]
/// ```
public struct StorageOptions: OptionSet, Sendable, Hashable {
    /// The raw value, with one bit per tier.
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// Keeps the original and its record in memory.
    public static let originalsInMemory = StorageOptions(rawValue: 1)
    /// Keeps the original and its record on disk and in the tiers behind it.
    public static let originalsOnDisk = StorageOptions(rawValue: 2)
    /// Keeps the variant in memory.
    public static let variantsInMemory = StorageOptions(rawValue: 4)
    /// Keeps the variant on disk and in the tiers behind it.
    public static let variantsOnDisk = StorageOptions(rawValue: 8)
    /// Uses every tier. This is the default.
    public static let all: StorageOptions = [.originalsInMemory, .originalsOnDisk, .variantsInMemory, .variantsOnDisk]
}
