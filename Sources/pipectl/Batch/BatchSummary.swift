import PipelineSupport
import Pipeline

struct BatchSummary: Sendable, Hashable {
    var items = 0
    /// The number of files written. `unchanged` counts files that already contained the same bytes.
    var written = 0
    var unchanged = 0
    /// The number of items with the same name and bytes as an earlier item of the same source. Both items share one
    /// file.
    var repeated = 0
    /// The number of outputs that were renamed by adding a digest because another output has the name, and the first
    /// such output.
    private(set) var renamed = 0
    private(set) var firstRenamed: OutputName?
    /// The outputs of earlier runs whose source no longer exists, except the `pruned` outputs that this run removed.
    var orphans: [String] = []
    var pruned: [String] = []
    /// Whether an input could not be read completely.
    var hasUnreadInput = false
    /// The number of items skipped because the same source and recipe occurred earlier in the input.
    var duplicates = 0
    /// The number of files skipped because they are outputs of the batch.
    var ownOutputs = 0
    /// The number of names in folders that were skipped, by reason. They are not items.
    var leftOut: [SkipReason: Int] = [:]
    var outcomes: [ItemOutcome: Int] = [:]
    /// The number of items, by how their original was obtained. An item that shared another item's fetch is not
    /// counted.
    var originalOutcomes: [ImageResponse.Outcome: Int] = [:]
    /// The number of items that shared another item's fetch or render.
    var collapsed = 0
    /// A failure of a source, with its reason.
    struct Failure: Sendable, Hashable {
        /// The first item with this failure.
        var line: ItemJSON
        /// The number of recipes of the source with this failure.
        var items = 1

        /// The failure as human-readable text.
        var text: String {
            (line.failureText ?? "")
                + (items > 1 ? " (\(items) recipes)" : line.recipe.isEmpty ? "" : " [\(TextTable.plain(line.recipe))]")
        }
    }
    /// The first failures, at most `failuresShown`. `furtherFailures` counts the others.
    private(set) var firstFailures: [Failure] = []
    private(set) var furtherFailures = 0
    private var lastFailure: ItemJSON?
    static let failuresShown = 10
    /// The number of failed items, by error code.
    var failures: [String: Int] = [:]
    var bytes = 0
    var seconds = 0.0
    var isInterrupted = false
    /// Errors that occurred while writing the report or the gallery. They do not affect the items.
    var problems: [String] = []

    var hits: Int { [.memory, .disk, .remote].reduce(0) { $0 + outcomes[$1, default: 0] } }
    var failed: Int { outcomes[.failed, default: 0] }
    var skipped: Int { outcomes[.skipped, default: 0] }

    var exit: ProgramExit {
        if isInterrupted { return .interrupted }
        if failed > 0 { return .itemsFailed }
        return problems.isEmpty ? .done : .outputFailed
    }

    mutating func count(_ item: ItemJSON) {
        if item.outcome == .leftOut {
            if let reason = item.error.flatMap({ SkipReason(rawValue: $0.message) }) {
                leftOut[reason, default: 0] += 1
            }
            return
        }
        items += 1
        outcomes[item.outcome, default: 0] += 1
        if item.collapsed == true {
            collapsed += 1
        } else if let original = item.originalOutcome {
            originalOutcomes[original, default: 0] += 1
        }
        if item.outcome == .failed, let error = item.error { failures[error.code.rawValue, default: 0] += 1 }
        switch item.written {
        case true?: written += 1
        case false?: unchanged += 1
        case nil:
            if item.error == nil { repeated += 1 }
            return
        }
        bytes += item.bytes ?? 0
    }

    /// Whether every input was read completely and the run wrote an output.
    var readAll: Bool {
        !isInterrupted && !hasUnreadInput && written + unchanged > 0
            && failures[PipelineError.Code.notFound.rawValue] == nil
    }

    mutating func keepRenamed(_ name: OutputName) {
        renamed += 1
        firstRenamed = firstRenamed ?? name
    }

    /// Keeps a failed item for the summary. Consecutive items of a source that fail for the same reason are combined.
    mutating func keepFailure(_ line: ItemJSON) {
        let isRepeated = lastFailure?.source == line.source && lastFailure?.failureText == line.failureText
        lastFailure = line
        if isRepeated {
            if furtherFailures == 0 { firstFailures[firstFailures.count - 1].items += 1 }
        } else if firstFailures.count < Self.failuresShown {
            firstFailures.append(Failure(line: line))
        } else {
            furtherFailures += 1
        }
    }

    /// The summary as a few lines of human-readable text.
    var text: String {
        let rate = seconds > 0 ? Readable.tenths(Double(items) / seconds) : "–"
        var lines = [
            "\(Readable.count(items, "item", "items")) in \(Readable.duration(seconds: seconds)) (\(rate) per second), \(Readable.bytes(bytes))",
            "  from memory \(outcomes[.memory, default: 0]), from disk \(outcomes[.disk, default: 0]),"
                + (outcomes[.remote].map { " from the bucket \($0)," } ?? "")
                + " rendered \(outcomes[.rendered, default: 0]), failed \(failed)"
                + (skipped > 0 ? ", skipped \(skipped) (not images)" : ""),
            "  files written \(written), unchanged \(unchanged)"
                + (repeated > 0 ? ", identical to another output \(repeated)" : "")
                + (duplicates > 0 ? ", duplicates \(duplicates)" : "")
                + (ownOutputs > 0 ? ", outputs of earlier runs skipped \(ownOutputs)" : ""),
        ]
        for (heading, paths) in [
            ("outputs removed because their sources no longer exist: \(pruned.count)", pruned),
            ("outputs whose sources no longer exist: \(orphans.count); --prune removes them", orphans),
        ] where !paths.isEmpty {
            lines.append("  " + heading)
            lines += paths.prefix(Self.failuresShown).map { "    " + TextTable.plain($0) }
            if paths.count > Self.failuresShown { lines.append("    …; use --json to list all of them") }
        }
        if let name = firstRenamed, let wanted = name.wanted {
            lines.append(
                "  \(Readable.count(renamed, "output was", "outputs were")) renamed because of duplicate names: "
                    + TextTable.plain("\(wanted) → \(name.path); ")
                    + (name.disambiguatingTemplate.map { "use --name '\($0)' to make the names unique" }
                        ?? "set different names in the manifest"))
        }
        let names = [
            ("hidden (--hidden includes them)", leftOut[.hidden]),
            ("created by other programs", leftOut[.otherPrograms]),
            ("excluded", leftOut[.excluded]), ("broken links", leftOut[.deadLink]),
            ("links to folders that have already been read", leftOut[.knownFolder]),
        ].compactMap { text, count in count.map { "\($0) \(text)" } }
        if !names.isEmpty { lines.append("  skipped: " + names.joined(separator: ", ")) }
        if let links = leftOut[.link] {
            lines.append(
                "  \(Readable.count(links, "link was", "links were")) skipped; --follow-links includes them")
        }
        var originals = ImageResponse.Outcome.ofOriginals.compactMap { outcome in
            originalOutcomes[outcome].map { "\(outcome.rawValue) \($0)" }
        }
        if collapsed > 0 { originals.append("shared \(collapsed)") }
        if !originals.isEmpty { lines.append("  originals: " + originals.joined(separator: ", ")) }
        for (code, count) in failures.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            lines.append("  \(count) × \(code)")
        }
        for failure in firstFailures { lines.append("  \(failure.text)") }
        if furtherFailures > 0 {
            lines.append("  … and \(furtherFailures) more; use -v to print all of them, or --report to record them")
        }
        for problem in problems { lines.append("  \(problem)") }
        if isInterrupted { lines.append("  interrupted; run again to finish the remaining items") }
        return lines.joined(separator: "\n") + "\n"
    }

    var json: String {
        func counts(_ pairs: some Sequence<(String, Int)>) -> JSONText {
            pairs.reduce(into: JSONText()) { $0.add($1.0, $1.1) }
        }
        return JSONText([
            "items": items, "written": written, "unchanged": unchanged, "repeated": repeated, "renamed": renamed,
            "duplicates": duplicates, "ownOutputs": ownOutputs,
            "outcomes": counts(
                ItemOutcome.allCases.filter { $0 != .leftOut }.map { ($0.rawValue, outcomes[$0, default: 0]) }),
            "orphans": orphans, "pruned": pruned, "problems": problems,
            "leftOut": counts(SkipReason.allCases.map { ("\($0)", leftOut[$0, default: 0]) }),
            "originalOutcomes": counts(
                ImageResponse.Outcome.ofOriginals.map { ($0.rawValue, originalOutcomes[$0, default: 0]) }),
            "collapsed": collapsed, "failures": counts(failures.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }),
            "bytes": bytes, "seconds": seconds, "interrupted": isInterrupted,
        ]).json
    }
}
