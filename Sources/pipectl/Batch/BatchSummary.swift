import PipelineSupport
import Pipeline

struct BatchSummary: Sendable, Hashable {
    var items = 0
    /// Files written, and files that already held the same bytes.
    var written = 0
    var unchanged = 0
    /// Items with the same name and bytes as an earlier item of their source. They share its file.
    var repeated = 0
    /// Outputs that got a digest in their names, since others had the names before, and the first of them.
    private(set) var renamed = 0
    private(set) var firstRenamed: OutputName?
    /// Outputs of earlier runs that have lost their sources, without the `pruned` outputs that this run removed.
    var orphans: [String] = []
    var pruned: [String] = []
    /// Whether an input could not be read, or not to its end.
    var hasUnreadInput = false
    /// Items skipped because the same source and recipe came earlier in the input.
    var duplicates = 0
    /// Files left out because they are outputs of the batch, not sources.
    var ownOutputs = 0
    /// Names in folders that were not read; they are no items.
    var leftOut: [LeftOut: Int] = [:]
    var outcomes: [ItemOutcome: Int] = [:]
    /// How originals were obtained; an item that shared another's fetch is not counted.
    var originalOutcomes: [OriginalOutcome: Int] = [:]
    /// Items answered by another item's fetch or render.
    var collapsed = 0
    /// What failed of a source, and why.
    struct Failure: Sendable, Hashable {
        /// The first item that failed so.
        var line: ItemJSON
        /// How many recipes of its source did.
        var items = 1

        /// For people.
        var text: String {
            (line.failureText ?? "")
                + (items > 1 ? " (\(items) recipes)" : line.recipe.isEmpty ? "" : " [\(TextTable.plain(line.recipe))]")
        }
    }
    /// The first failures, at most `failuresShown`, and how many there were after them.
    private(set) var firstFailures: [Failure] = []
    private(set) var furtherFailures = 0
    private var lastFailure: ItemJSON?
    static let failuresShown = 10
    /// Failed items by error code.
    var failures: [String: Int] = [:]
    var bytes = 0
    var seconds = 0.0
    var isInterrupted = false
    /// Errors in writing the report or the gallery; they do not affect the items themselves.
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
            if let reason = item.error.flatMap({ LeftOut(rawValue: $0.message) }) { leftOut[reason, default: 0] += 1 }
            return
        }
        items += 1
        outcomes[item.outcome, default: 0] += 1
        if item.collapsed == true {
            collapsed += 1
        } else if let original = item.originalOutcome {
            originalOutcomes[original, default: 0] += 1
        }
        if item.outcome == .failed, let error = item.error { failures[error.code.name, default: 0] += 1 }
        switch item.written {
        case true?: written += 1
        case false?: unchanged += 1
        case nil:
            if item.error == nil { repeated += 1 }
            return
        }
        bytes += item.bytes ?? 0
    }

    /// Whether every input could be read to its end, and the run made an output.
    var readAll: Bool {
        !isInterrupted && !hasUnreadInput && written + unchanged > 0
            && failures[PipelineError.Code.notFound.name] == nil
    }

    mutating func keepRenamed(_ name: OutputName) {
        renamed += 1
        firstRenamed = firstRenamed ?? name
    }

    /// Keeps a failed item among the first, together with others of its source that fail for the same reason: they come
    /// one after another.
    ///
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
                + (skipped > 0 ? ", skipped \(skipped) (no images)" : ""),
            "  files written \(written), unchanged \(unchanged)"
                + (repeated > 0 ? ", same as another size or recipe \(repeated)" : "")
                + (duplicates > 0 ? ", duplicates \(duplicates)" : "")
                + (ownOutputs > 0 ? ", own outputs left out \(ownOutputs)" : ""),
        ]
        for (heading, paths) in [
            ("removed \(pruned.count), whose sources are gone", pruned),
            ("outputs whose sources are gone: \(orphans.count); --prune removes them", orphans),
        ] where !paths.isEmpty {
            lines.append("  " + heading)
            lines += paths.prefix(Self.failuresShown).map { "    " + TextTable.plain($0) }
            if paths.count > Self.failuresShown { lines.append("    …; --json lists all") }
        }
        if let name = firstRenamed, let wanted = name.wanted {
            lines.append(
                "  \(Readable.count(renamed, "output was", "outputs were")) renamed, as others have the name: "
                    + TextTable.plain("\(wanted) → \(name.path); ")
                    + (name.mendedTemplate.map { "--name '\($0)' tells them apart" }
                        ?? "set other names in the manifest"))
        }
        let names = [
            ("hidden (--hidden takes them)", leftOut[.hidden]), ("of other programs", leftOut[.otherPrograms]),
            ("excluded", leftOut[.excluded]), ("links to nothing", leftOut[.deadLink]),
            ("links to folders that are read already", leftOut[.knownFolder]),
        ].compactMap { text, count in count.map { "\($0) \(text)" } }
        if !names.isEmpty { lines.append("  left out: " + names.joined(separator: ", ")) }
        if let links = leftOut[.link] {
            lines.append(
                "  \(Readable.count(links, "link was", "links were")) left out; --follow-links follows links")
        }
        var originals = OriginalOutcome.listed.compactMap { outcome in
            originalOutcomes[outcome].map { "\(outcome.rawValue) \($0)" }
        }
        if collapsed > 0 { originals.append("shared \(collapsed)") }
        if !originals.isEmpty { lines.append("  originals: " + originals.joined(separator: ", ")) }
        for (code, count) in failures.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            lines.append("  \(count) × \(code)")
        }
        for failure in firstFailures { lines.append("  \(failure.text)") }
        if furtherFailures > 0 {
            lines.append("  … and \(furtherFailures) more; -v prints them all, --report records them")
        }
        for problem in problems { lines.append("  \(problem)") }
        if isInterrupted { lines.append("  interrupted; run again to finish the remaining items") }
        return lines.joined(separator: "\n") + "\n"
    }

    var json: String {
        var json = JSONText()
        json.add("items", items)
        json.add("written", written)
        json.add("unchanged", unchanged)
        json.add("repeated", repeated)
        json.add("renamed", renamed)
        json.add("duplicates", duplicates)
        json.add("ownOutputs", ownOutputs)
        json.add("outcomes") { inner in
            for outcome in ItemOutcome.allCases where outcome != .leftOut {
                inner.add(outcome.rawValue, outcomes[outcome, default: 0])
            }
        }
        json.add("orphans", texts: orphans)
        json.add("pruned", texts: pruned)
        json.add("problems", texts: problems)
        json.add("leftOut") { inner in
            for reason in LeftOut.allCases { inner.add("\(reason)", leftOut[reason, default: 0]) }
        }
        json.add("originalOutcomes") { inner in
            for outcome in OriginalOutcome.listed {
                inner.add(outcome.rawValue, originalOutcomes[outcome, default: 0])
            }
        }
        json.add("collapsed", collapsed)
        json.add("failures") { inner in
            for (code, count) in failures.sorted(by: { $0.key < $1.key }) { inner.add(code, count) }
        }
        json.add("bytes", bytes)
        json.add("seconds", raw: JSONText.thousandths(seconds))
        json.add("interrupted", isInterrupted)
        return json.closed
    }
}
