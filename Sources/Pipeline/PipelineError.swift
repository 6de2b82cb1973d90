import PipelineCaching
import PipelineSupport
import Variants

/// Describes why a request failed. All methods of `ImagePipeline` throw this error. Compare `code` to handle a failure,
/// and show or log `message`.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// do throws(PipelineError) {
///     _ = try await pipeline.image(for: "https://example.org/photo.jpg", recipe: "thumbnail:300")
/// } catch {
///     print(error.code == .notFound ? "there is no such picture" : error.message)
///     print("HTTP status:", error.code.status)
/// }
/// ```
///
/// `message` describes what happened, to which object, and how to fix it. URLs in the message contain no credentials.
public struct PipelineError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. A struct rather than an enum, so that adding a code does not break callers. Codes with the
    /// same name are equal.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The name in reports and JSON.
        public let rawValue: String
        /// The HTTP status to send to a client after a failure with this code.
        public let status: Int
        /// The exit code of a command with a single source that failed with this code.
        package let exitCode: Int32
        /// The description in the table of `docs/commands.md`.
        package let summary: String

        /// Creates the code with this name. The status is 500 if the pipeline does not report such a code.
        public init(rawValue: String) {
            self = Self.all.first { $0.rawValue == rawValue } ?? Self(rawValue, 6, 500, "")
        }

        package init(_ name: String, _ exitCode: Int32, _ status: Int, _ summary: String) {
            rawValue = name
            self.exitCode = exitCode
            self.status = status
            self.summary = summary
        }

        public var description: String { rawValue }
        public static func == (a: Self, b: Self) -> Bool { a.rawValue == b.rawValue }
        public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }

        /// The source is neither an http(s) URL nor a path.
        public static let invalidSource = Code(
            "invalidSource", 2, 400, "the source is neither an http(s) URL nor a path")
        /// The recipe does not parse.
        public static let invalidRecipe = Code("invalidRecipe", 2, 400, "the recipe is not valid")
        /// A named mask or overlay is missing or ambiguous.
        public static let maskUnavailable = Code(
            "maskUnavailable", 2, 400, "a named mask or overlay is missing or ambiguous")
        /// The installed libvips cannot write the output format, or this pipeline only decodes the format.
        public static let notAvailable = Code(
            "notAvailable", 2, 501,
            "the installed libvips cannot write the output format, or the pipeline only decodes that format")
        /// libvips is missing. The message names the package.
        public static let libraryUnavailable = Code(
            "libraryUnavailable", 2, 500, "libvips is missing; the message names the package")
        /// The policy forbids the scheme, host or address of the source.
        public static let sourceRefused = Code(
            "sourceRefused", 3, 403, "the settings do not allow the scheme, host or address of the source")
        /// The origin answered 404 or 410, or the file or folder does not exist.
        public static let notFound = Code(
            "notFound", 4, 404, "the origin answered 404 or 410, or the file or folder does not exist")
        /// The origin could not be reached, closed the connection early, or answered with an error.
        public static let fetchFailed = Code(
            "fetchFailed", 4, 502,
            "the origin could not be reached, closed the connection early, or answered with an error")
        /// Connecting, the response header, the body, or the complete transfer took too long.
        public static let fetchTimedOut = Code(
            "fetchTimedOut", 4, 504, "connecting, the response header, the body or the complete transfer took too long")
        /// With `cacheOnly`, no stored response could be used.
        public static let notCached = Code(
            "notCached", 4, 504, "no usable response is cached, and the request forbids contacting the origin")
        /// The bytes are not in any known image format.
        public static let notAnImage = Code("notAnImage", 5, 415, "the bytes are not in a known image format")
        /// The image is in a format that this pipeline does not read.
        public static let unsupportedFormat = Code(
            "unsupportedFormat", 5, 415, "an image in a format that is not decoded")
        /// A limit is exceeded. The message names the limit and its value.
        public static let overLimit = Code(
            "overLimit", 5, 413, "a limit is exceeded; the message names it and its value")
        /// The decoder rejected the bytes.
        public static let undecodable = Code("undecodable", 6, 422, "the decoder rejected the bytes")
        /// A step or the encoder cannot do what the recipe requests.
        public static let renderFailed = Code(
            "renderFailed", 6, 422, "a step or the encoder cannot do what the recipe requests")
        /// The render took longer than `limits.seconds` or `limits.encodeSeconds`, or recently did so.
        public static let renderDeadline = Code(
            "renderDeadline", 6, 504,
            "the render took longer than `limits.seconds` or `limits.encodeSeconds`, now or recently")
        /// The render process crashed or sent an invalid reply, or recently did so with the same original.
        public static let renderCrashed = Code(
            "renderCrashed", 6, 422,
            "the render process crashed or sent an invalid reply, now or recently with the same original")
        /// The render process was killed twice by something other than the pipeline, such as the kernel when memory ran
        /// out. See `retryAfter` for when to try again.
        public static let workerKilled = Code(
            "workerKilled", 6, 503,
            "the render process was killed twice from outside, for example by the kernel when memory ran out")
        /// Render workers cannot be started.
        public static let workersUnavailable = Code("workersUnavailable", 6, 500, "render workers cannot be started")
        /// The cache folder cannot be opened, or was written by a newer version.
        public static let cacheUnavailable = Code(
            "cacheUnavailable", 7, 500, "the cache folder cannot be opened, or was written by a newer version")
        /// Too many fetches or renders are in progress or waiting. See `retryAfter` for when to try again.
        public static let overloaded = Code(
            "overloaded", 4, 503, "too many requests are in progress and waiting (`server.queue`)")
        /// The caches cannot answer the request, and the caller has used up its allowance of work.
        public static let rateLimited = Code(
            "rateLimited", 6, 429, "the request is not in the caches, and the client has exceeded its rate limit")
        /// A newer load replaced this one in the window of an `ImageLoader`.
        public static let superseded = Code(
            "superseded", 6, 503, "a newer load replaced the request in the loader's window")
        /// The pipeline has been shut down.
        public static let shutDown = Code("shutDown", 6, 503, "the pipeline has been shut down")
        /// The caller cancelled the request.
        public static let cancelled = Code("cancelled", 130, 503, "the caller canceled the request")

        /// Whether the same request may succeed later although nothing is changed. A job queue can retry such requests.
        ///
        /// After `overloaded`, `workerKilled` and `rateLimited`, wait for `retryAfter`. Some failures of an origin are
        /// remembered for `CachingConfiguration.errorMaxAge`. A retry before then fails without contacting the origin.
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

    /// The kind of failure, stable across versions.
    public var code: Code
    /// A description of the failure, the object concerned, and how to fix it.
    public var message: String
    /// The underlying error, if any.
    public var cause: (any Error)?
    /// The time to wait before trying again. The value is nil unless the code is `overloaded`, `workerKilled` or
    /// `rateLimited`.
    public var retryAfter: Duration?
    /// The status of the origin's response, if it is the reason for the failure.
    package var originStatus: Int?
    /// The stage that threw the error, for the log.
    var stage: String?
    public var description: String { message }

    /// Creates an error, for example in the tests of a program.
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
        // After memory has run out, it takes a while until enough is free again.
        if code == .workerKilled { retryAfter = .seconds(10) }
    }
}

extension PipelineError {
    static func shutDown(_ source: ImageSource) -> PipelineError {
        PipelineError(
            .shutDown, "\(source.displayName): the pipeline has been shut down; create a new one for further requests")
    }

    static func overloaded(_ message: String, retryAfter seconds: Int) -> PipelineError {
        var error = PipelineError(.overloaded, message + "; try again in \(seconds) s")
        error.retryAfter = .seconds(seconds)
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

    /// Creates an error for a cache folder that cannot be opened, or for a purge that failed.
    init(_ error: StoreError) { self.init(.cacheUnavailable, error.description, cause: error) }
}
