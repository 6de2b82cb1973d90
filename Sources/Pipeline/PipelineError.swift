import Variants

/// Why a request got no image. `message` says what happened, to what, and what would help; URLs in it carry no
/// credentials.
public struct PipelineError: Error, Sendable, CustomStringConvertible {
    /// A stable name; a struct, so that adding one breaks nobody.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        public let name: String
        public init(_ name: String) { self.name = name }
        public var description: String { name }

        public static let invalidSource = Code("invalidSource")
        public static let invalidRecipe = Code("invalidRecipe")
        public static let invalidConfiguration = Code("invalidConfiguration")
        /// A named mask or overlay is missing or ambiguous.
        public static let maskUnavailable = Code("maskUnavailable")
        /// Policy forbids the source: scheme, host or address.
        public static let sourceRefused = Code("sourceRefused")
        /// The origin answered 404 or 410, or the file does not exist.
        public static let notFound = Code("notFound")
        public static let fetchFailed = Code("fetchFailed")
        public static let fetchTimedOut = Code("fetchTimedOut")
        /// `cacheOnly` found nothing to reuse.
        public static let notCached = Code("notCached")
        public static let notAnImage = Code("notAnImage")
        public static let unsupportedFormat = Code("unsupportedFormat")
        public static let overLimit = Code("overLimit")
        public static let undecodable = Code("undecodable")
        /// The recipe names a step or output that is not built yet.
        public static let notAvailable = Code("notAvailable")
        public static let renderFailed = Code("renderFailed")
        public static let renderDeadline = Code("renderDeadline")
        public static let libraryUnavailable = Code("libraryUnavailable")
        public static let cacheUnavailable = Code("cacheUnavailable")
        public static let cancelled = Code("cancelled")
    }

    public var code: Code
    public var message: String
    public var cause: (any Error)?
    public var description: String { message }

    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }
}

extension PipelineError {
    /// A render's failure, told of the source it happened to.
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
            }
        self.init(code, "\(source): \(error.message)", cause: error)
    }
}
