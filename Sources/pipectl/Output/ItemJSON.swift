import PipelineSupport
import Pipeline

enum ItemOutcome: String, Sendable, Hashable, CaseIterable, JSONMember {
    case memory, disk, remote, rendered
    /// A file in a folder that is not an image. Such a file is not counted as a failure.
    case skipped
    case failed
    /// A name in a folder that was skipped. The name is not counted as an item of the batch.
    case leftOut
}

extension ImageResponse.Outcome {
    /// The original's record was fresh, and the original's body was not needed.
    static let unneeded = Self(rawValue: "none")

    /// The outcomes of originals in reports, in this order.
    static let ofOriginals: [Self] = [.memory, .disk, .remote, .revalidated, .stale, .network, .unneeded]

    /// The human-readable form, used after "original from".
    var words: String {
        switch self {
        case .memory: "memory"
        case .disk: "the disk"
        case .remote: "the bucket"
        case .revalidated: "the disk, validated by the origin"
        case .stale: "the disk, stale"
        case .network: "the network"
        default: rawValue
        }
    }
}

/// The reason why an item failed: a stable code and a human-readable message.
struct BatchFailure: Error, Sendable, Hashable {
    var code: PipelineError.Code
    var message: String
}

/// One line of a report, and the output of `get --json`. Members without a value are omitted.
struct ItemJSON: Sendable, Hashable {
    var source: String
    var recipe: String
    var key: String?
    var output: String?
    /// Whether the output was written. False if the file already contained these bytes.
    var written: Bool?
    var outcome: ItemOutcome
    var originalOutcome: ImageResponse.Outcome?
    var collapsed: Bool?
    /// True if pixels are missing, and nil if the picture is complete.
    var damaged: Bool?
    var bytes: Int?
    var width: Int?
    var height: Int?
    var format: String?
    var digest: String?
    var milliseconds: Timings?
    var error: BatchFailure?

    /// The source without credentials or signatures.
    var shownSource: String { SourceURL.redacting(source) }

    /// A human-readable description of the failure, or nil if the item did not fail. Recipes that fail for the same
    /// reason have the same description.
    var failureText: String? {
        guard outcome == .failed, let error else { return nil }
        let source = shownSource
        return TextTable.plain(error.message.hasPrefix(source) ? error.message : "\(source): \(error.message)")
    }

    /// A human-readable sentence that states where the result came from and how long each stage took.
    var sentence: String {
        var text = "\(shownSource): \(outcome.rawValue)"
        if let originalOutcome, originalOutcome != .unneeded { text += ", original from \(originalOutcome.words)" }
        if damaged == true { text += ", damaged" }
        guard let milliseconds else { return text }
        func shown(_ value: Duration) -> String { Readable.tenths(value.milliseconds) }
        let stages = [
            ("fetch", milliseconds.fetch), ("decode", milliseconds.decode), ("steps", milliseconds.operations),
            ("encode", milliseconds.encode), ("store", milliseconds.store),
        ].filter { $0.1 >= .microseconds(50) }.map { "\($0.0) \(shown($0.1))" }
        text += ", in \(shown(milliseconds.total)) ms"
        return stages.isEmpty ? text : text + " (" + stages.joined(separator: ", ") + ")"
    }
}

extension ItemJSON: JSONRecord {
    static var blank: Self { Self(source: "", recipe: "", outcome: .failed) }

    var line: String { json }

    /// Creates a failed item.
    init(source: String, recipe: String, error: BatchFailure) {
        self.init(source: source, recipe: recipe, outcome: .failed)
        self.error = error
    }

    mutating func visit(_ members: inout JSONMembers) {
        source = shownSource
        members("source", &source)
        members("recipe", &recipe)
        members("key", &key)
        members("output", &output)
        members("written", &written)
        members("outcome", &outcome)
        members("originalOutcome", &originalOutcome)
        members("collapsed", &collapsed)
        members("damaged", &damaged)
        members("bytes", &bytes)
        members("width", &width)
        members("height", &height)
        members("format", &format)
        members("digest", &digest)
        members("milliseconds", &milliseconds)
        members("error", &error)
    }
}

extension ImageResponse.Outcome: JSONMember {}

/// A duration in milliseconds.
extension Duration: JSONMember {
    init?(json: JSONValue) {
        // A `Duration` of more traps.
        guard let milliseconds = Double(json: json), abs(milliseconds) < 1e15 else { return nil }
        self = .milliseconds(milliseconds)
    }

    var json: String { milliseconds.json }
}

extension Timings: JSONRecord {
    static var blank: Self { Timings() }

    mutating func visit(_ members: inout JSONMembers) {
        members("queue", &queue)
        members("fetch", &fetch)
        members("decode", &decode)
        members("operations", &operations)
        members("encode", &encode)
        members("store", &store)
        members("total", &total)
    }
}

extension BatchFailure: JSONRecord {
    static var blank: Self { Self(code: .abandoned, message: "") }

    mutating func visit(_ members: inout JSONMembers) {
        members("code", &code)
        members("message", &message)
    }
}

extension PipelineError.Code: JSONMember {
    init?(json: JSONValue) {
        guard let name = String(json: json) else { return nil }
        self = Self.ofItems.first { $0.rawValue == name } ?? Self(rawValue: name)
    }

    var json: String { rawValue.json }
}
