import Glibc
import Pipeline
import PipelineFetching
import PipelineSupport

/// A finished item and its output.
struct BatchOutput: Sendable {
    /// The item's line in the report. An item is `failed` until its output has been written.
    var line: ItemJSON
    /// The variant to write to `line.output`, or nil if the item has no output.
    var variant: BatchVariant?
    /// The name of the output, relative to the output folder.
    var name: String?
    var facts: SourceFacts?

    /// Records that the output has been written.
    ///
    /// - Parameter isNew: Whether the bytes were written. False if the file already contained them.
    mutating func isWritten(_ isNew: Bool) {
        guard let item = variant?.item else { return }
        let path = line.output
        line = item
        line.output = path
        line.written = isNew
    }
}

/// Names, writes, counts, reports and shows finished items, in input order.
///
/// `@unchecked Sendable`: used only on the runner's writing thread.
final class BatchFinisher: @unchecked Sendable {
    private let options: BatchOptions
    private let folder: String
    private let sources: SourceGuard
    private var namer: OutputNamer
    private var summary = BatchSummary()
    /// The number of items that an earlier run has reported, by the hash of the report's line. Different sources may
    /// have equal lines.
    private var reported: [Int: Int] = [:]
    private var sinks: [any BatchSink] = []
    private var progress: ProgressLine?
    private let began = ContinuousClock.now

    /// Creates the output folder, the report and the gallery at the beginning, so that a batch that cannot save its
    /// results does not start.
    init(_ options: BatchOptions, sources: SourceGuard) throws(CommandFailure) {
        self.options = options
        self.sources = sources
        var folder = options.outputFolder
        while folder.count > 1, folder.hasSuffix("/") { folder.removeLast() }
        self.folder = folder
        do throws(NameError) {
            namer = try OutputNamer(template: options.nameTemplate)
        } catch {
            throw CommandFailure(.usage, error.message)
        }
        do throws(FileError) {
            if options.bucket == nil, options.bounds == nil {
                try AtomicOutput.makeFolder(folder)
                guard access(folder, W_OK | X_OK) == 0 else { throw FileError("write", folder) }
                if options.foldsCase(folder) {
                    // The template has already been validated above.
                    namer = (try? OutputNamer(template: options.nameTemplate, foldsCase: true)) ?? namer
                }
            }
            for path in [options.galleryPath, options.reportPath, options.manifest?.path] {
                // Opening truncates the file, so check first that the path is not one of the sources.
                if let path, path != "-", !options.goesOnWithReport, let reason = Self.refusal(path, sources) {
                    throw FileError("write", path, reason)
                }
            }
            if let path = options.galleryPath {
                sinks.append(
                    try Gallery(
                        path: path, title: "Contact sheet of \(folder)", groupsBySource: options.recipes.count != 1))
            }
            if let terms = options.record, options.bucket == nil { openRecord(terms) }
            if let options = options.manifest { sinks.append(try SiteManifest(options)) }
            if let path = options.reportPath {
                let report = try BatchReport(path, resumes: options.goesOnWithReport)
                sinks.append(report)
                if options.goesOnWithReport { resume(report) }
            }
        } catch {
            throw CommandFailure(.outputFailed, error.description)
        }
        if let descriptor = options.progressDescriptor {
            progress = ProgressLine(total: options.total, width: ProgressLine.columns(of: descriptor))
        }
    }

    /// Names the output of an item, and writes it if it is a file. Must be called in input order.
    func output(_ item: BatchItem, _ outcome: BatchOutcome) -> BatchOutput {
        var output = BatchOutput(
            line: ItemJSON(source: item.source.source, recipe: item.canonical, outcome: .failed))
        output.facts = item.facts
        switch outcome {
        case .failure(let failure):
            output.line.error = failure
            if item.source.isFound, failure.code == .notAnImage { output.line.outcome = .skipped }
            if failure.code == .leftOut { output.line.outcome = .leftOut }
        case .variant(let variant):
            // If writing fails, the item's line contains only these members.
            output.line.key = variant.item.key
            output.line.originalOutcome = variant.item.originalOutcome
            output.line.collapsed = variant.item.collapsed
            output.line.damaged = variant.item.damaged
            output.line.milliseconds = variant.item.milliseconds
            do {
                let name = try namer.name(
                    for: OutputNaming(item, fileExtension: variant.fileExtension, of: variant.item))
                let path = options.bucket?.object(name.path) ?? folder + "/" + name.path
                output.line.output = path
                output.name = name.path
                if name.wanted != nil { summary.keepRenamed(name) }
                if name.isRepeated {
                    output.line = variant.item
                    output.line.output = path
                    output.line.collapsed = true
                    break
                }
                output.variant = variant
                guard options.bucket == nil else { break }
                guard let bounds = options.bounds else {
                    output.isWritten(
                        try AtomicOutput.write(variant.bytes, to: path, makeFolders: true, refusal: sources.refusal))
                    break
                }
                output.isWritten(
                    try AtomicOutput.write(variant.bytes, to: path, below: bounds, refusal: sources.refusal))
            } catch let error as LocalFile.Failure {
                output.line.error = BatchFailure(code: .outputRefused, message: error.message)
            } catch let error as NameError {
                output.line.error = BatchFailure(code: .badName, message: error.message)
            } catch {
                output.line.error = BatchFailure(code: .outputFailed, message: "\(error)")
            }
        }
        return output
    }

    /// Reports an item that was not rendered.
    func finish(_ item: BatchItem, _ failure: BatchFailure) { finish(output(item, .failure(failure)).line) }

    /// Reports an item that another process rendered, unless an earlier run has already reported the item.
    func finish(_ line: ItemJSON) {
        guard let count = reported[Self.identity(line)], count > 0 else { return finish(BatchOutput(line: line)) }
        reported[Self.identity(line)] = count - 1
    }

    private static func identity(_ line: ItemJSON) -> Int {
        var hasher = Hasher()
        hasher.combine(ByteString(line.shownSource))
        hasher.combine(ByteString(line.recipe))
        return hasher.finalize()
    }

    /// Continues the report of an earlier run.
    private func resume(_ report: BatchReport) {
        do throws(FileError) {
            try report.resume { line in
                summary.count(line)
                reported[Self.identity(line), default: 0] += 1
            }
        } catch {
            summary.problems.append(
                "the report may list items twice, because its earlier lines cannot be read: \(error)")
        }
    }

    /// Counts, reports and shows an item. Must be called in input order.
    func finish(_ output: BatchOutput) {
        let line = output.line
        summary.count(line)
        reportFailure(line)
        sinks.removeAll { sink in
            do throws(FileError) {
                try sink.add(output)
                return false
            } catch {
                summary.problems.append("\(sink.problem): \(error)")
                return true
            }
        }
        show()
    }

    /// Reports a failed item immediately if `onFailure` is set. Otherwise keeps the first failures for the summary.
    private func reportFailure(_ line: ItemJSON) {
        guard line.failureText != nil else { return }
        guard let onFailure = options.onFailure else { return summary.keepFailure(line) }
        if progress != nil { send(ProgressLine.clear) }
        onFailure(BatchSummary.Failure(line: line).text)
    }

    func end(
        _ input: (duplicates: Int, ownOutputs: Int, isUnread: Bool), isInterrupted: Bool
    ) -> BatchSummary {
        (summary.duplicates, summary.ownOutputs, summary.hasUnreadInput) = input
        summary.isInterrupted = isInterrupted
        summary.seconds = seconds
        for sink in sinks {
            do throws(FileError) { try sink.finish(&summary) } catch {
                summary.problems.append("\(sink.problem): \(error)")
            }
        }
        sinks = []
        if progress != nil { send(ProgressLine.clear) }
        return summary
    }

    /// Opens the record of outputs. If this fails, the error is reported only if the batch removes outputs.
    private func openRecord(_ terms: RecordOptions) {
        do throws(FileError) {
            sinks.append(try OutputRecord(of: folder, terms) { [sources] in sources.refusal(replacing: $0) })
        } catch {
            if terms.prunes { summary.problems.append("--prune removed nothing: \(error)") }
        }
    }

    /// Returns the reason why `path` must not be overwritten, or nil if it may be. Devices and empty files have no
    /// content to lose.
    private static func refusal(_ path: String, _ sources: SourceGuard) -> String? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else { return nil }
        return sources.refusal(replacing: path)
    }

    private var seconds: Double { began.duration(to: .now) / .seconds(1) }

    private func show() {
        if let text = progress?.update(summary, seconds: seconds) { send(text) }
    }

    /// Writes to the terminal. If the terminal has been closed, the batch continues without a progress line.
    private func send(_ text: String) {
        guard let descriptor = options.progressDescriptor else { return }
        do {
            try AtomicOutput.write(Array(text.utf8), toDescriptor: descriptor, named: "the terminal")
        } catch {
            progress = nil
        }
    }
}
