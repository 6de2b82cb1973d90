import PipelineSupport
import Pipeline

enum ItemOutcome: String, Sendable, Hashable, CaseIterable {
    case memory, disk, remote, rendered
    /// A file found while reading a folder that is not an image; this does not count as a failure.
    case skipped
    case failed
    /// A name in a folder that was left out; it does not count as an item of the batch.
    case leftOut
}

extension OriginalOutcome {
    /// The human-readable form, to follow "original from".
    var words: String {
        switch self {
        case .memory: "memory"
        case .disk: "the disk"
        case .remote: "the bucket"
        case .revalidated: "the disk, validated by the origin"
        case .stale: "the disk, stale"
        case .network: "the network"
        case .none: "nowhere"
        default: rawValue
        }
    }
}

/// Why an item failed: a stable code and a human-readable message.
struct BatchFailure: Error, Sendable, Hashable {
    var code: PipelineError.Code
    var message: String
}

/// One line of a report, and the output of `get --json`. Unknown members are left out.
struct ItemJSON: Sendable, Hashable {
    var source: String
    var recipe: String
    var key: String?
    var output: String?
    /// False when the file already held these bytes.
    var written: Bool?
    var outcome: ItemOutcome
    var originalOutcome: OriginalOutcome?
    var collapsed: Bool?
    /// Whether pixels are missing; nil if none are.
    var damaged: Bool?
    var bytes: Int?
    var width: Int?
    var height: Int?
    var format: String?
    var digest: String?
    var milliseconds: Timings?
    var error: BatchFailure?

    /// The source without credentials and signatures.
    var shownSource: String { SourceURL.redacting(source) }

    /// A human-readable description of the failure, the same for each recipe that fails so; nil if the item did not
    /// fail.
    var failureText: String? {
        guard outcome == .failed, let error else { return nil }
        let source = shownSource
        return TextTable.plain(error.message.hasPrefix(source) ? error.message : "\(source): \(error.message)")
    }

    /// A human-readable sentence on where the answer came from and how long each stage took.
    var sentence: String {
        var text = "\(shownSource): \(outcome.rawValue)"
        if let originalOutcome, originalOutcome != .none { text += ", original from \(originalOutcome.words)" }
        if damaged == true { text += ", damaged" }
        guard let milliseconds else { return text }
        func shown(_ value: Double) -> String { Readable.tenths(value) }
        let stages = [
            ("fetch", milliseconds.fetch), ("decode", milliseconds.decode), ("steps", milliseconds.operations),
            ("encode", milliseconds.encode), ("store", milliseconds.store),
        ].filter { $0.1 >= 0.05 }.map { "\($0.0) \(shown($0.1))" }
        text += ", in \(shown(milliseconds.total)) ms"
        return stages.isEmpty ? text : text + " (" + stages.joined(separator: ", ") + ")"
    }

    /// The object on one line, with its members in a fixed order.
    var line: String {
        var json = JSONText()
        json.add("source", shownSource)
        json.add("recipe", recipe)
        json.add("key", key)
        json.add("output", output)
        json.add("written", written)
        json.add("outcome", outcome.rawValue)
        json.add("originalOutcome", originalOutcome?.rawValue)
        json.add("collapsed", collapsed)
        json.add("damaged", damaged)
        json.add("bytes", bytes)
        json.add("width", width)
        json.add("height", height)
        json.add("format", format)
        json.add("digest", digest)
        if let milliseconds {
            json.add("milliseconds") { inner in
                inner.add("queue", raw: JSONText.thousandths(milliseconds.queue))
                inner.add("fetch", raw: JSONText.thousandths(milliseconds.fetch))
                inner.add("decode", raw: JSONText.thousandths(milliseconds.decode))
                inner.add("operations", raw: JSONText.thousandths(milliseconds.operations))
                inner.add("encode", raw: JSONText.thousandths(milliseconds.encode))
                inner.add("store", raw: JSONText.thousandths(milliseconds.store))
                inner.add("total", raw: JSONText.thousandths(milliseconds.total))
            }
        }
        if let error {
            json.add("error") { inner in
                inner.add("code", error.code.name)
                inner.add("message", error.message)
            }
        }
        return json.closed
    }
}
