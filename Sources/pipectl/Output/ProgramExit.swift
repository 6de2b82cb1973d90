/// The program's exit codes, as listed by `pipectl --help`.
enum ProgramExit: Int32, Sendable, CaseIterable {
    case done = 0
    /// Some or all items of a batch failed.
    case itemsFailed = 1
    /// A usage or configuration error, including a missing mask.
    case usage = 2
    /// Policy forbids the source.
    case refused = 3
    /// The source was not found, or fetching it failed or timed out.
    case fetchFailed = 4
    /// The source is not an image, or exceeds a limit.
    case notAnImage = 5
    /// The render failed, crashed or exceeded its deadline.
    case renderFailed = 6
    /// The cache folder cannot be created or opened, or is newer than this program.
    case cacheUnavailable = 7
    /// The output cannot be written.
    case outputFailed = 8
    case interrupted = 130

    /// The exit code of a single-source command for an error code; unknown codes count as failed renders.
    init(errorCode: String) {
        self = Self.byErrorCode[errorCode] ?? .renderFailed
    }

    private static let byErrorCode: [String: ProgramExit] = [
        "usage": .usage, "badRecipe": .usage, "invalidRecipe": .usage, "badSource": .usage, "invalidSource": .usage,
        "badConfiguration": .usage, "invalidConfiguration": .usage, "maskUnavailable": .usage, "notAvailable": .usage,
        "libraryUnavailable": .usage, "noRecipe": .usage, "badName": .usage,
        "sourceRefused": .refused, "refused": .refused, "forbidden": .refused,
        "notFound": .fetchFailed, "sourceNotFound": .fetchFailed, "fetchFailed": .fetchFailed,
        "originFailed": .fetchFailed, "timedOut": .fetchFailed, "fetchTimedOut": .fetchFailed,
        "unreachable": .fetchFailed, "notCached": .fetchFailed,
        "notAnImage": .notAnImage, "unsupportedFormat": .notAnImage, "overLimit": .notAnImage, "tooLarge": .notAnImage,
        "undecodable": .renderFailed, "notApplicable": .renderFailed, "overBudget": .renderFailed,
        "encodingFailed": .renderFailed, "renderFailed": .renderFailed, "renderCrashed": .renderFailed,
        "renderDeadline": .renderFailed, "deadline": .renderFailed,
        "cacheUnavailable": .cacheUnavailable, "cacheNewer": .cacheUnavailable,
        "outputFailed": .outputFailed, "cancelled": .interrupted, "interrupted": .interrupted,
    ]
}
