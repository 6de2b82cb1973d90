import PipelineCaching
import PipelineSupport
import Variants

/// Why a request got no image. `message` says what happened, to what, and what would help; URLs in it carry no
/// credentials.
public struct PipelineError: Error, Sendable, CustomStringConvertible {
    /// What went wrong; a struct rather than an enum, so that adding a code does not break callers. Its `name` alone
    /// makes it equal to another.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The name in reports and JSON.
        public let name: String
        /// The HTTP status for a client whose request failed with this code.
        public let status: Int
        /// The exit code of a command whose only source failed with this code.
        package let exitCode: Int32
        /// What happened, in the table of `docs/commands.md`.
        package let summary: String

        package init(_ name: String) { self = Self.all.first { $0.name == name } ?? Self(name, 6, 500, "") }

        package init(_ name: String, _ exitCode: Int32, _ status: Int, _ summary: String) {
            self.name = name
            self.exitCode = exitCode
            self.status = status
            self.summary = summary
        }

        public var description: String { name }
        public static func == (a: Self, b: Self) -> Bool { a.name == b.name }
        public func hash(into hasher: inout Hasher) { hasher.combine(name) }

        /// The source is neither an http(s) URL nor a path.
        public static let invalidSource = Code(
            "invalidSource", 2, 400, "the source is neither an http(s) URL nor a path")
        /// The recipe does not parse.
        public static let invalidRecipe = Code("invalidRecipe", 2, 400, "the recipe does not parse")
        /// A named mask or overlay is missing or ambiguous.
        public static let maskUnavailable = Code(
            "maskUnavailable", 2, 400, "a named mask or overlay is missing or ambiguous")
        /// The installed libvips cannot write the output format, or the format is not one that is written at all.
        public static let notAvailable = Code(
            "notAvailable", 2, 501,
            "the installed libvips cannot write the output format, or the format is not one that is written at all")
        /// Libvips is missing; the message names the package.
        public static let libraryUnavailable = Code(
            "libraryUnavailable", 2, 500, "libvips is missing; the message names the package")
        /// Policy forbids the source: scheme, host or address.
        public static let sourceRefused = Code(
            "sourceRefused", 3, 403, "policy forbids the source: scheme, host or address")
        /// The origin answered 404 or 410, or the file or folder does not exist.
        public static let notFound = Code(
            "notFound", 4, 404, "the origin answered 404 or 410, or there is no such file or folder")
        /// The origin was not reached, broke off, or answered with an error.
        public static let fetchFailed = Code(
            "fetchFailed", 4, 502, "the origin was not reached, broke off, or answered with an error")
        /// Connecting, the head, the body or the whole transfer took too long.
        public static let fetchTimedOut = Code(
            "fetchTimedOut", 4, 504, "connecting, the head, the body or the whole transfer took too long")
        /// `cacheOnly` found nothing to reuse.
        public static let notCached = Code("notCached", 4, 504, "`cacheOnly` found nothing to reuse")
        /// The bytes are not in any known image format.
        public static let notAnImage = Code("notAnImage", 5, 415, "the bytes are not in any known image format")
        /// An image in a format that this pipeline does not read.
        public static let unsupportedFormat = Code(
            "unsupportedFormat", 5, 415, "an image in a format that this pipeline does not read")
        /// A limit is exceeded; the message names it and its value.
        public static let overLimit = Code(
            "overLimit", 5, 413, "a limit is exceeded; the message names it and its value")
        /// The decoder refused the bytes.
        public static let undecodable = Code("undecodable", 6, 422, "the decoder refused the bytes")
        /// A step or the encoder could not do what was asked.
        public static let renderFailed = Code(
            "renderFailed", 6, 422, "a step or the encoder could not do what was asked")
        /// The render took longer than `limits.seconds` or `limits.encodeSeconds`, or did so recently.
        public static let renderDeadline = Code(
            "renderDeadline", 6, 504,
            "the render took longer than `limits.seconds` or `limits.encodeSeconds`, or did so recently")
        /// The render process crashed or sent an invalid reply, or did so recently with the same original.
        public static let renderCrashed = Code(
            "renderCrashed", 6, 422,
            "the render process crashed or sent an invalid reply, or did so recently with the same original")
        /// Something else killed the render process twice, such as the kernel when memory runs out; the error's
        /// `retryAfter` says when to try again.
        public static let workerKilled = Code(
            "workerKilled", 6, 503,
            "something else killed the render process twice, such as the kernel when memory runs out")
        /// Render workers cannot be started.
        public static let workersUnavailable = Code("workersUnavailable", 6, 500, "render workers cannot be started")
        /// The cache folder cannot be opened, or was written by a newer version.
        public static let cacheUnavailable = Code(
            "cacheUnavailable", 7, 500, "the cache folder cannot be opened, or was written by a newer version")
        /// Too much is in progress and waiting; the error's `retryAfter` says when to try again.
        public static let overloaded = Code(
            "overloaded", 4, 503, "too much is in progress and waiting (`queue`)")
        /// The caches cannot answer the request, and the caller has used up its share of work.
        public static let rateLimited = Code(
            "rateLimited", 6, 429, "the caches cannot answer the request, and the caller has used up its share of work")
        /// A newer load took its place in the window of an `ImageLoader`.
        public static let superseded = Code(
            "superseded", 6, 503, "a newer load took its place in a loader's window")
        /// The pipeline has been shut down.
        public static let shutDown = Code("shutDown", 6, 503, "the pipeline has been shut down")
        /// The caller cancelled the request.
        public static let cancelled = Code("cancelled", 130, 503, "the caller cancelled the request")

        /// Whether the same request may succeed later without anything being changed: what a queue of jobs tries again. After
        /// `overloaded`, `workerKilled` and `rateLimited` not before `retryAfter`; a pipeline answers with some failures of origins for
        /// `CachingConfiguration.errorMaxAge` seconds without asking again.
        public var isTransient: Bool {
            let transient: [Code] = [
                .fetchFailed, .fetchTimedOut, .renderDeadline, .workerKilled, .workersUnavailable, .cacheUnavailable,
                .overloaded, .rateLimited, .shutDown,
            ]
            return transient.contains(self)
        }

        /// Every code that a pipeline reports.
        package static let all: [Code] = [
            .invalidSource, .invalidRecipe, .maskUnavailable, .notAvailable, .libraryUnavailable, .sourceRefused,
            .notFound, .fetchFailed, .fetchTimedOut, .notCached, .notAnImage, .unsupportedFormat, .overLimit,
            .undecodable, .renderFailed, .renderDeadline, .renderCrashed, .workerKilled, .workersUnavailable,
            .cacheUnavailable, .overloaded, .rateLimited, .superseded, .shutDown, .cancelled,
        ]
    }

    /// What went wrong, stable across versions.
    public var code: Code
    /// What happened, to what, and what would help.
    public var message: String
    /// The error of the layer below, if any.
    public var cause: (any Error)?
    /// Seconds after which it is worth to try again; nil unless `overloaded`, `workerKilled` or `rateLimited`.
    public var retryAfter: Int?
    /// The stage it came from, for the log.
    var stage: String?
    public var description: String { message }

    /// An error as the pipeline throws it, for tests of programs too.
    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }
}

extension PipelineError {
    init(_ error: RenderError, source: String) {
        let code: Code =
            switch error.code {
            case .notAnImage: .notAnImage
            case .unsupportedFormat: .unsupportedFormat
            case .overLimit: .overLimit
            case .undecodable: .undecodable
            case .notAvailable: .notAvailable
            case .maskUnavailable: .maskUnavailable
            case .cancelled: .cancelled
            case .deadline: .renderDeadline
            case .libraryUnavailable: .libraryUnavailable
            case .crashed, .workerProtocol, .quarantined: .renderCrashed
            case .workerKilled: .workerKilled
            case .workerUnavailable: .workersUnavailable
            default: .renderFailed
            }
        self.init(code, "\(source): \(error.message)", cause: error)
        // Memory that ran out takes a while to be free again.
        if code == .workerKilled { retryAfter = 10 }
    }
}

extension PipelineError {
    static func shutDown(_ source: ImageSource) -> PipelineError {
        PipelineError(
            .shutDown, "\(source.displayName): the pipeline has been shut down; make another for further requests")
    }

    static func overloaded(_ message: String, retryAfter seconds: Int) -> PipelineError {
        var error = PipelineError(.overloaded, message + "; try again in \(seconds) s")
        error.retryAfter = seconds
        return error
    }
}

extension PipelineError: CancellableError {
    package static var cancelled: PipelineError { PipelineError(.cancelled, "the request was cancelled") }
    package var isCancellation: Bool { code == .cancelled }
    package var isLackOfUrgency: Bool { code == .overloaded }

    init(_ error: RecipeError, _ place: String = "") {
        self.init(.invalidRecipe, place + error.description, cause: error)
    }

    /// The cache folder cannot be opened, or a purge of it failed.
    init(_ error: StoreError) { self.init(.cacheUnavailable, error.description, cause: error) }
}
