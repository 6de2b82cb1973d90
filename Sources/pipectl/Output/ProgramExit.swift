/// What the program ends with (design §5).
enum ProgramExit: Int32, Sendable, CaseIterable {
    case done = 0
    /// Some or all items of a batch failed.
    case itemsFailed = 1
    /// Usage or configuration, a missing mask included.
    case usage = 2
    /// The source is refused by policy.
    case refused = 3
    /// Not found, fetch failed or timed out.
    case fetchFailed = 4
    /// Not an image, or over a limit.
    case notAnImage = 5
    /// Render failed, crashed or past its deadline.
    case renderFailed = 6
    /// The cache folder cannot be created or opened, or is newer than this program.
    case cacheUnavailable = 7
    /// The output cannot be written.
    case outputFailed = 8
    case interrupted = 130

    /// What a single-source command ends with after an error of this code; unknown codes count as failed renders.
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
