public import HTTPCaching
public import PipelineCaching
package import PipelineFetching
import PipelineSupport
public import Variants

/// Where an original comes from.
public enum ImageSource: Sendable, Hashable {
    /// An absolute http or https URL.
    case url(String)
    /// A path on the local file system; relative paths are resolved against the working directory.
    case file(String)
    /// Bytes the caller holds, with a name for messages. They are identified by their digest.
    case bytes([UInt8], name: String)

    /// Whether both are the same text or bytes. Two spellings of a name that Swift's strings call equal are two files.
    public static func == (left: ImageSource, right: ImageSource) -> Bool {
        switch (left, right) {
        case (.url(let left), .url(let right)), (.file(let left), .file(let right)):
            ByteString(left) == ByteString(right)
        case (.bytes(let left, let name), .bytes(let right, let other)):
            left == right && ByteString(name) == ByteString(other)
        default: false
        }
    }

    /// Hashes what `==` compares.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .url(let text): hasher.combine(ByteString(text))
        case .file(let path): hasher.combine(ByteString(path))
        case .bytes(let bytes, _): hasher.combine(bytes)
        }
    }

    /// Parses a source as people write it: text that begins with a scheme and `://` is a URL, everything else is a
    /// path. A `file` URL of this machine is a path too (RFC 8089); other schemes than http and https are refused as
    /// URLs rather than looked up as files.
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

    /// The URL or path; nil for bytes.
    var text: String? {
        switch self {
        case .url(let text), .file(let text): text
        case .bytes: nil
        }
    }

    /// Its name in messages, without credentials.
    var displayName: String {
        switch self {
        case .url(let text), .file(let text): SourceURL.redacting(text)
        case .bytes(_, let name): name
        }
    }

    /// The path of `file:///path` or `file://localhost/path`, percent-decoded; nil for anything else, and if the path
    /// holds a NUL, a query or a fragment, or is not UTF-8.
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

/// How urgent a request is; shared work runs at the highest priority of its waiters.
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

/// One request to the pipeline: a source, and the recipe to derive from it.
public struct ImageRequest: Sendable {
    /// Where the original comes from.
    public var source: ImageSource
    /// nil asks for the original's own bytes.
    public var recipe: Recipe?
    /// The formats that the client accepts for an `auto` output, best first; empty keeps the original's family.
    public var negotiated: [ImageFormat] = []
    /// How far stored responses are trusted; nil, the default, for the pipeline's own policy.
    public var policy: CachePolicy?
    /// Urgency; `normal` by default.
    public var priority = RequestPriority.normal
    /// The longest that it may take, from its start; then it fails with `renderDeadline` if it waits for a render, else with
    /// `fetchTimedOut`. nil, the default, for the limits of the configuration alone.
    public var timeout: Duration?
    /// How long to wait before using the network or rendering; answers from the caches are not delayed.
    public var delay = Duration.zero
    /// Tiers that may be filled; all by default.
    public var storage = StorageOptions.all
    /// Identifies the source in place of its URL, for example for one picture served by several hosts.
    public var sourceID: String?
    /// Fields sent to the origin with the request.
    public var fields: [HeaderField] = []
    /// Whether the work continues, and fills the caches, after every caller has left; by default it is cancelled.
    public var finishWhenAbandoned = false
    /// Asked before the request contacts the origin or renders, in the foreground; nil, the default, permits it.
    package var gate: WorkGate?
    /// The folder below which the source, `NAME:PATH`, is a file; nil, the default, for other sources.
    package var folder: OpenFolder?

    public init(_ source: ImageSource, recipe: Recipe? = nil) {
        self.source = source
        self.recipe = recipe
    }
}
