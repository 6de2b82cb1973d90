public import PipelineCaching
public import PipelineSupport
public import Variants

/// Contains the encoded picture that a request returned, its size and format, and where it came from.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// let image = try await pipeline.image(for: "photo.jpg", recipe: "thumbnail:300,webp")
/// print(image.mediaType, image.width, "×", image.height, image.bytes.count, "bytes")
/// if image.outcome == .rendered { print("rendered in", image.timings.total) }
/// ```
public struct ImageResponse: Sendable, Equatable, CustomStringConvertible {
    /// Reports where the bytes came from: the name of a tier, or one of the values below.
    public struct Outcome: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The name used in reports.
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Creates the outcome for bytes that came from a tier.
        public init(_ tier: TierName) { rawValue = tier.description }
        public var description: String { rawValue }

        /// The bytes came from the memory of this process.
        public static let memory = Outcome(.memory)
        /// The bytes came from the cache folder.
        public static let disk = Outcome(.disk)
        /// The bytes came from the object store behind the folder (`PipelineConfiguration.remote`).
        public static let remote = Outcome(.remote)
        /// The bytes were rendered for this request.
        public static let rendered = Outcome(rawValue: "rendered")
        /// The bytes are the original itself, which was obtained for this request.
        public static let original = Outcome(rawValue: "original")
        /// For an original: the origin sent it.
        public static let network = Outcome(rawValue: "network")
        /// For an original: the origin confirmed the stored response.
        public static let revalidated = Outcome(rawValue: "revalidated")
        /// For an original: a stale stored response was used.
        public static let stale = Outcome(rawValue: "stale")
    }

    /// The encoded picture.
    public var bytes: [UInt8]
    /// The media type of `bytes`, such as `image/webp`.
    public var mediaType: String
    /// The format of `bytes`.
    public var format: ImageFormat
    /// The width in pixels of the picture as displayed.
    public var width: Int
    /// The height in pixels of the picture as displayed.
    public var height: Int
    /// The SHA-256 of `bytes`, in hexadecimal.
    public var digest: String
    /// The variant key, or nil if the response is an original.
    public var key: String?
    /// The time when the variant was rendered, in Unix seconds, or nil if the response is an original.
    public var created: Double?
    /// How `bytes` were obtained.
    public var outcome: Outcome
    /// How the original was obtained, or nil if its record was fresh and its body was not needed.
    public var originalOutcome: Outcome?
    /// The reason for contacting the origin (RFC 9211 §2.2), or nil if it was not contacted.
    public var forward: CacheHandling.Forward?
    /// The status of the origin's response, if it differs from the status of the original. An example is the 304 of a
    /// validation.
    public var forwardStatus: Int?
    /// Whether the original, and therefore this response, may be stored for other requests. A damaged picture may not
    /// be stored.
    public var isStorable: Bool
    /// Whether pixels are missing because the original is incomplete (`RenderLimits.acceptsDamaged`).
    public var isDamaged: Bool
    /// Whether this request shared the work of another request.
    public var isCollapsed: Bool
    /// 1 if a second pass may replace the variant later (`SecondPassConfiguration`), 2 if a second pass has finished, and
    /// nil if the variant has no second pass.
    public var pass: Int?
    /// The number of bytes that a second pass has saved.
    package var savedBytes = 0
    /// Whether the original was stale and has not been validated.
    public var isStale: Bool
    /// The record of the original: status, fields, times and digest.
    public var record: OriginalRecord
    /// The durations of the parts of the request.
    public var timings: Timings

    /// The media type, size, length and outcome.
    public var description: String {
        let original = originalOutcome.map { ", original: \($0)" } ?? ""
        return
            "\(mediaType), \(width) × \(height), \(bytes.count) bytes, \(outcome)\(original)\(isStale ? ", stale" : "")"
    }
}

extension ImageResponse {
    /// Creates a response, for example for the tests of a program. The remaining properties describe a storable
    /// response that was rendered for this request.
    public init(
        bytes: [UInt8], format: ImageFormat, width: Int, height: Int, record: OriginalRecord,
        outcome: Outcome = .rendered, originalOutcome: Outcome? = .network, isStale: Bool = false
    ) {
        self.init(
            bytes: bytes, mediaType: format.mediaType, format: format, width: width, height: height,
            digest: sha256Hex(bytes), key: nil, created: nil, outcome: outcome, originalOutcome: originalOutcome,
            forward: nil, forwardStatus: nil, isStorable: true, isDamaged: false, isCollapsed: false, pass: nil,
            isStale: isStale,
            record: record, timings: Timings())
    }

    /// The response as a hit in the memory tier, without bytes.
    package var asMemoryHit: ImageResponse {
        var hit = self
        (hit.bytes, hit.outcome, hit.originalOutcome, hit.timings) = ([], .memory, nil, Timings())
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
        pass = original.mayStore ? variant.pass : nil
        savedBytes = variant.entry?.firstLength.map { $0 - variant.bytes.count } ?? 0
        isStale = original.isStale
        record = original.record
        timings = variant.timings
        timings.fetch = .milliseconds(original.fetchMilliseconds)
        timings.total = max(.zero, admitted.began.duration(to: .now) - timings.queue)
    }
}
