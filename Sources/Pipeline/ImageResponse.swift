public import PipelineCaching
public import PipelineSupport
public import Variants

/// Where the bytes of a response came from: the name of a tier, or one of the members below.
public struct Outcome: RawRepresentable, Sendable, Hashable {
    /// As reports show it.
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// A tier of this name had them.
    public init(_ tier: TierName) { rawValue = tier.description }

    /// The memory of this process.
    public static let memory = Outcome(.memory)
    /// The cache folder.
    public static let disk = Outcome(.disk)
    /// The object store behind the folder (`PipelineConfiguration.remote`).
    public static let remote = Outcome(.remote)
    /// They were rendered for this request.
    public static let rendered = Outcome(rawValue: "rendered")
    /// They are the original's own, as it was just obtained.
    public static let original = Outcome(rawValue: "original")
}

/// How the original was obtained: the name of the tier that had its body, or one of the members below.
public struct OriginalOutcome: RawRepresentable, Sendable, Hashable {
    /// As reports show it.
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// A tier of this name had it; `none` for nil.
    public init(_ tier: TierName?) { rawValue = tier?.description ?? "none" }

    /// The memory of this process.
    public static let memory = OriginalOutcome(.memory)
    /// The cache folder.
    public static let disk = OriginalOutcome(.disk)
    /// The object store behind the folder had it.
    public static let remote = OriginalOutcome(.remote)
    /// The origin confirmed the stored one.
    public static let revalidated = OriginalOutcome(rawValue: "revalidated")
    /// A stale one was used.
    public static let stale = OriginalOutcome(rawValue: "stale")
    /// The origin sent it.
    public static let network = OriginalOutcome(rawValue: "network")
    /// Its record was fresh and its body not needed.
    public static let none = OriginalOutcome(nil)

    /// Those that every report lists, in this order.
    package static let listed: [OriginalOutcome] = [.memory, .disk, .remote, .revalidated, .stale, .network, .none]
}

/// An answered request.
public struct ImageResponse: Sendable {
    /// The encoded picture.
    public var bytes: [UInt8]
    /// For example `image/webp`.
    public var mediaType: String
    /// The format of `bytes`.
    public var format: ImageFormat
    /// Width in pixels; for an original, before its EXIF orientation is applied.
    public var width: Int
    /// Height in pixels, like `width`.
    public var height: Int
    /// SHA-256 of `bytes`, hexadecimal.
    public var digest: String
    /// The variant key; nil for an original.
    public var key: String?
    /// Unix seconds when the variant was made; nil for an original.
    public var created: Double?
    /// Where `bytes` came from.
    public var outcome: Outcome
    /// How the original was obtained.
    public var originalOutcome: OriginalOutcome
    /// Why the origin was asked (RFC 9211 §2.2); nil if it was not.
    public var forward: CacheHandling.Forward?
    /// The origin's status, if it is not that of the original, such as the 304 of a validation.
    public var forwardStatus: Int?
    /// Whether the original, and therefore this response, may be stored for other requests; a damaged one may not.
    public var isStorable: Bool
    /// Whether pixels are missing, because the original lacks them (`DamagedOriginals.accept`).
    public var isDamaged: Bool
    /// Whether this request was coalesced with another's work.
    public var isCollapsed: Bool
    /// Whether the original was past its freshness and not validated.
    public var isStale: Bool
    /// The original's record: status, fields, times, digest.
    public var record: OriginalRecord
    /// How long the parts took.
    public var timings: Timings
}

extension ImageResponse {
    /// A response as the pipeline gives it, for tests of programs. What is not named is as in an answer that was rendered for
    /// this request and may be stored.
    public init(
        bytes: [UInt8], format: ImageFormat, width: Int, height: Int, record: OriginalRecord,
        outcome: Outcome = .rendered, originalOutcome: OriginalOutcome = .network, isStale: Bool = false
    ) {
        self.init(
            bytes: bytes, mediaType: format.mediaType, format: format, width: width, height: height,
            digest: sha256Hex(bytes), key: nil, created: nil, outcome: outcome, originalOutcome: originalOutcome,
            forward: nil, forwardStatus: nil, isStorable: true, isDamaged: false, isCollapsed: false, isStale: isStale,
            record: record, timings: Timings())
    }

    /// The same answer as a hit of the memory tier, without its bytes.
    package var asMemoryHit: ImageResponse {
        var hit = self
        (hit.bytes, hit.outcome, hit.originalOutcome, hit.timings) = ([], .memory, .none, Timings())
        (hit.forward, hit.forwardStatus, hit.isCollapsed) = (nil, nil, false)
        return hit
    }
}

extension ImageResponse {
    init(_ variant: Variant, of original: Original, _ admitted: AdmittedRequest) {
        bytes = variant.bytes
        mediaType = variant.format.mediaType
        format = variant.format
        width = variant.width
        height = variant.height
        digest = variant.digest
        key = variant.entry?.key
        created = variant.entry?.created
        forward = original.forward
        forwardStatus = original.forwardStatus
        isStorable = original.mayStore && !variant.isDamaged
        isDamaged = variant.isDamaged
        outcome = variant.outcome
        originalOutcome = original.outcome
        isCollapsed = variant.isCollapsed || original.isCollapsed
        isStale = original.isStale
        record = original.record
        timings = variant.timings
        timings.fetch = original.fetchMilliseconds
        timings.total = max(0, admitted.began.duration(to: .now).milliseconds - timings.queue)
    }
}
