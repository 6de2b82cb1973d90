import PipelineCaching
import PipelineSupport
import Variants

/// Why a request got no image. `message` says what happened, to what, and what would help; URLs in it carry no
/// credentials.
public struct PipelineError: Error, Sendable, CustomStringConvertible {
    /// A stable name; a struct rather than an enum, so that adding a code does not break callers.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The name in reports and JSON.
        public let name: String
        public init(_ name: String) { self.name = name }
        public var description: String { name }

        /// The source is neither an http(s) URL nor a path.
        public static let invalidSource = Code("invalidSource")
        /// The recipe does not parse.
        public static let invalidRecipe = Code("invalidRecipe")
        /// A setting is invalid.
        public static let invalidConfiguration = Code("invalidConfiguration")
        /// A named mask or overlay is missing or ambiguous.
        public static let maskUnavailable = Code("maskUnavailable")
        /// Policy forbids the source: scheme, host or address.
        public static let sourceRefused = Code("sourceRefused")
        /// The origin answered 404 or 410, or the file does not exist.
        public static let notFound = Code("notFound")
        /// The origin was not reached, broke off, or answered with an error.
        public static let fetchFailed = Code("fetchFailed")
        /// Connecting, the head, the body or the whole transfer took too long.
        public static let fetchTimedOut = Code("fetchTimedOut")
        /// `cacheOnly` found nothing to reuse.
        public static let notCached = Code("notCached")
        /// The bytes are not in any known image format.
        public static let notAnImage = Code("notAnImage")
        /// An image in a format that this pipeline does not read.
        public static let unsupportedFormat = Code("unsupportedFormat")
        /// A limit is exceeded; the message names it and its value.
        public static let overLimit = Code("overLimit")
        /// The decoder refused the bytes.
        public static let undecodable = Code("undecodable")
        /// The installed libvips cannot write the output format, or the format is not one that is written at all.
        public static let notAvailable = Code("notAvailable")
        /// A step or the encoder could not do what was asked.
        public static let renderFailed = Code("renderFailed")
        /// The render took longer than `limits.seconds` or `limits.encodeSeconds`, or did so recently.
        public static let renderDeadline = Code("renderDeadline")
        /// The render process crashed or sent an invalid reply, or did so recently with the same original.
        public static let renderCrashed = Code("renderCrashed")
        /// Render workers cannot be started.
        public static let workersUnavailable = Code("workersUnavailable")
        /// libvips is missing; the message names the package.
        public static let libraryUnavailable = Code("libraryUnavailable")
        /// The cache folder cannot be opened, or was written by a newer version.
        public static let cacheUnavailable = Code("cacheUnavailable")
        /// The caller cancelled the request.
        public static let cancelled = Code("cancelled")
    }

    /// What went wrong, stable across versions.
    public var code: Code
    /// What happened, to what, and what would help.
    public var message: String
    /// The error of the layer below, if any.
    public var cause: (any Error)?
    /// The stage it came from, for the log.
    var stage: String?
    public var description: String { message }

    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }
}

extension PipelineError {
    /// A render error, with the source it occurred on.
    init(_ error: RenderError, source: String) {
        let code: Code =
            switch error.code {
            case .notAnImage: .notAnImage
            case .unsupportedFormat: .unsupportedFormat
            case .overLimit: .overLimit
            case .undecodable: .undecodable
            case .notAvailable: .notAvailable
            case .notApplicable, .overBudget, .encodingFailed: .renderFailed
            case .maskUnavailable: .maskUnavailable
            case .cancelled: .cancelled
            case .deadline: .renderDeadline
            case .libraryUnavailable: .libraryUnavailable
            case .crashed, .workerProtocol, .quarantined: .renderCrashed
            case .workerUnavailable: .workersUnavailable
            }
        self.init(code, "\(source): \(error.message)", cause: error)
    }
}

extension PipelineError: CancellableError {
    package static var cancelled: PipelineError { PipelineError(.cancelled, "the request was cancelled") }
    package var isCancellation: Bool { code == .cancelled }

    /// The cache folder cannot be opened, or a purge of it failed.
    init(_ error: StoreError) { self.init(.cacheUnavailable, error.description, cause: error) }
}
