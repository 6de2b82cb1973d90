public import PipelineCaching
public import PipelineSupport
public import Variants

/// Where the bytes of a response came from.
public enum Outcome: String, Sendable, Hashable { case memory, disk, rendered, original }

/// How the original was obtained; `none` if its record was fresh and the body was not needed.
public enum OriginalOutcome: String, Sendable, Hashable, CaseIterable {
    case memory, disk, revalidated, stale, network, none
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
    public var digest: Digest
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
    /// Whether the original, and therefore this response, may be stored for other requests.
    public var isStorable: Bool
    /// Whether this request was coalesced with another's work.
    public var isCollapsed: Bool
    /// Whether the original was past its freshness and not validated.
    public var isStale: Bool
    /// The original's record: status, fields, times, digest.
    public var record: OriginalRecord
    /// How long the parts took.
    public var timings: Timings
}

/// The events of one request, in this order; the last is `finished`, or the sequence throws.
public enum LoadEvent: Sendable {
    /// A stored image is available, possibly stale; reported at most once.
    case cached(ImageResponse, outcome: Outcome, isStale: Bool)
    /// The origin is being asked.
    case requesting(hadCached: Bool)
    /// Bytes of the body received so far, and how many the origin announced.
    case progress(received: Int, expected: Int?)
    case finished(ImageResponse)
}

extension Outcome {
    init(_ tier: TierName) { self = tier == .memory ? .memory : .disk }
}

extension OriginalOutcome {
    init(_ tier: TierName?) {
        switch tier {
        case nil: self = .none
        case .memory?: self = .memory
        default: self = .disk
        }
    }
}
