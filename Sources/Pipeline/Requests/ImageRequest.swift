public import HTTPCaching
public import PipelineCaching
package import PipelineFetching
import PipelineSupport
public import Variants

/// Specifies where the original comes from: a URL, a file, or bytes in memory.
///
/// ```swift
/// let page = ImageSource.url("https://example.org/photo.jpg")
/// let file = ImageSource.file("/srv/photos/1.jpg")
/// let upload = ImageSource.bytes([0xFF, 0xD8, 0xFF], name: "the upload")
/// let either = ImageSource("photos:42")  // Parses text: a URL, a path, or an original of a provider.
/// ```
public enum ImageSource: Sendable, Hashable {
    /// An absolute http or https URL.
    case url(String)
    /// A path on the local file system. Relative paths are resolved against the working directory.
    case file(String)
    /// Bytes supplied by the caller, with a name for messages. The bytes are identified by their digest.
    case bytes([UInt8], name: String)

    /// Compares bytes. Two names that are equal as Swift strings, but have different bytes, are different files.
    public static func == (left: ImageSource, right: ImageSource) -> Bool {
        switch (left, right) {
        case (.url(let left), .url(let right)), (.file(let left), .file(let right)):
            ByteString(left) == ByteString(right)
        case (.bytes(let left, let name), .bytes(let right, let other)):
            left == right && ByteString(name) == ByteString(other)
        default: false
        }
    }

    /// Hashes the properties that `==` compares.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .url(let text): hasher.combine(ByteString(text))
        case .file(let path): hasher.combine(ByteString(path))
        case .bytes(let bytes, _): hasher.combine(bytes)
        }
    }

    /// Parses a source. Text that begins with a scheme and `://` is a URL, and any other text is a path.
    ///
    /// A `file` URL on this machine is also a path (RFC 8089). Text with another unknown scheme becomes a URL, so that
    /// it is refused rather than looked up as a file.
    public init(_ text: String) {
        if let path = Self.filePath(text) {
            self = .file(path)
            return
        }
        let scheme = text.utf8.prefix { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."): true
            default: false
            }
        }
        self = !scheme.isEmpty && text.utf8.dropFirst(scheme.count).starts(with: "://".utf8) ? .url(text) : .file(text)
    }

    /// The URL or path, or nil if the source consists of bytes.
    var text: String? {
        switch self {
        case .url(let text), .file(let text): text
        case .bytes: nil
        }
    }

    /// The name of the source in messages, without credentials.
    var displayName: String {
        switch self {
        case .url(let text), .file(let text): SourceURL.redacting(text)
        case .bytes(_, let name): name
        }
    }

    /// Returns the name of the source for use in messages. A URL is shown in normalized form.
    func name(at url: SourceURL) -> String { if case .url = self { url.redacted } else { displayName } }

    /// Returns the percent-decoded path of `file:///path` or `file://localhost/path`. Returns nil if the text has a
    /// different form, or if the path contains a NUL, a query or a fragment, or is not valid UTF-8.
    private static func filePath(_ text: String) -> String? {
        guard text.utf8.prefix(7).elementsEqual("file://".utf8) else { return nil }
        var rest = text.utf8.dropFirst(7)
        if rest.starts(with: "localhost/".utf8) { rest = rest.dropFirst(9) }
        guard rest.first == UInt8(ascii: "/"), !rest.contains(UInt8(ascii: "?")), !rest.contains(UInt8(ascii: "#"))
        else {
            return nil
        }
        let bytes = SourceURL.percentDecoded(String(decoding: rest, as: UTF8.self))
        return bytes.contains(0) ? nil : String(validating: bytes, as: UTF8.self)
    }
}

/// Sets the urgency of a request: `ImageRequest.priority`, `OriginalRequest.priority` and `LoadTask.priority`. Work
/// that several requests share runs at the highest priority among them.
public enum RequestPriority: Int, Sendable, Hashable, Comparable {
    case low, normal, high

    /// Orders by urgency.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool { left.rawValue < right.rawValue }

    var taskPriority: TaskPriority {
        switch self {
        case .low: .utility
        case .normal: .medium
        case .high: .high
        }
    }
}

/// Specifies which picture to return: a source, a recipe, and how to use the caches. Pass the request to
/// `ImagePipeline.respond(to:)` or `ImagePipeline.load(_:)`.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// let recipe = try Recipe("thumbnail:300x200:fill,webp")
/// var request = ImageRequest(.url("https://example.org/photo.jpg"), recipe: recipe)
/// request.priority = .high
/// request.policy = .cacheElseLoad
/// request.timeout = .seconds(5)
/// let image = try await pipeline.respond(to: request)
/// ```
public struct ImageRequest: Sendable, Hashable {
    /// The source of the original.
    public var source: ImageSource
    /// The recipe. If nil, the default, the request is for the bytes of the original.
    public var recipe: Recipe?
    /// A recipe that depends on the original. It replaces `recipe`.
    package var choice: RecipeChoice?
    /// The formats that the client accepts for an `auto` output, best first. If empty, the default, the output keeps
    /// the family of the original's format.
    public var negotiated: [ImageFormat] = []
    /// The policy for using stored responses. If nil, the default, the pipeline's policy applies.
    public var policy: CachePolicy?
    /// The minimum time for which a stored picture counts as fresh after its arrival. It overrides the origin's lifetime
    /// and `no-cache`, but not `no-store`, `private` or a purge. If nil, the default, the rules of HTTP decide.
    public var minFreshness: Duration?
    /// The time after freshness ends in which a stored picture is used once more while it is validated in the
    /// background (RFC 5861 §3). It overrides `must-revalidate`, but not `no-store`, `private` or a purge. If nil, the
    /// default, the origin's `stale-while-revalidate` decides.
    public var staleWhileRevalidate: Duration?
    /// The maximum number of redirects, if it is lower than `FetchConfiguration.maxRedirects`. Defaults to nil. A stored
    /// response is used and validated regardless of its redirects.
    package var maxRedirects: Int?
    /// The urgency. Defaults to `normal`.
    public var priority = RequestPriority.normal
    /// The time limit for the request, counted from its start. When it has passed, the request fails with
    /// `renderDeadline` if it is waiting for a render, and with `fetchTimedOut` otherwise. If nil, the default, only
    /// the limits of the configuration apply.
    public var timeout: Duration?
    /// The time to wait before using the network or rendering. Responses from the caches are not delayed. Defaults to
    /// zero.
    public var delay = Duration.zero
    /// The tiers that may store results of the request. By default, all tiers may store them.
    public var storage = StorageOptions.all
    /// An identifier for the source, used instead of its URL, for example for a picture served by several hosts.
    /// Defaults to nil.
    public var sourceID: String?
    /// Header fields to send to the origin.
    public var fields: [HeaderField] = []
    /// Whether the work continues and fills the caches after every caller has been cancelled. If false, the default,
    /// the work is cancelled.
    public var finishWhenAbandoned = false
    /// Whether to make the second pass of the variant before the response (`SecondPassConfiguration`), even if the recipe
    /// names a format. Defaults to false.
    public var makesSecondPass = false
    /// Decides whether the request may contact the origin or render. Not used for background work. If nil, the default,
    /// everything is permitted.
    package var gate: WorkGate?
    /// The folder that contains the file of a source `NAME:PATH`. It is nil, the default, if the source has a different
    /// form.
    package var folder: OpenFolder?

    /// Whether the request has a recipe or a choice of recipes.
    var isForVariant: Bool { recipe != nil || choice != nil }

    /// Creates a request for a variant, or for the original if `recipe` is nil.
    public init(_ source: ImageSource, recipe: Recipe? = nil) {
        self.source = source
        self.recipe = recipe
    }
}
