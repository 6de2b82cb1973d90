import Pipeline

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
    case outputFailed = 8
    case interrupted = 130

    /// Returns the exit code of a single-source command. Error codes without a matching exit code are treated as failed
    /// renders.
    init(_ code: PipelineError.Code) { self = ProgramExit(rawValue: code.exitCode) ?? .renderFailed }
}

extension PipelineError.Code {
    // Codes with exit code 1 occur only in batches.
    static let badSource = Self("badSource", 1, 400, "the name of a file is not valid UTF-8")
    static let badManifest = Self("badManifest", 1, 400, "the manifest cannot be read")
    static let badManifestLine = Self("badManifestLine", 1, 400, "a line of the manifest is malformed")
    static let noRecipe = Self("noRecipe", 1, 400, "the item has no recipe, neither in the manifest nor from `-r`")
    static let badName = Self(
        "badName", 1, 400, "the item's output name is not a valid file name, or several outputs would have it")
    static let leftOut = Self(
        "leftOut", 1, 400, "a name in a folder was skipped, which is neither an item nor a failure")
    static let outputRefused = Self(
        "outputRefused", 1, 403,
        "the output is not covered by any `--output` option of the worker, or its path is not permitted")
    static let notSigned = Self(
        "notSigned", 1, 403, "a queue entry is unsigned, or signed with a different key or for a different batch")
    static let outputFailed = Self("outputFailed", 8, 500, "the output cannot be written")

    /// The error codes of commands, in addition to the pipeline's error codes.
    static let ofItems: [Self] = [
        .badSource, .badManifest, .badManifestLine, .noRecipe, .badName, .leftOut, .abandoned, .outputRefused,
        .notSigned, .outputFailed,
    ]
}
