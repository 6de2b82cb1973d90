import Glibc
import Pipeline
import PipelineFetching
import PipelineSupport

/// An item and its output, which may be written already.
struct BatchOutput: Sendable {
    /// What the report says: of an item whose output is not written, that it failed.
    var line: ItemJSON
    /// What is to be written to `line.output`, or is; nil if there is nothing.
    var variant: BatchVariant?
    /// The output's name relative to the output folder.
    var name: String?
    var facts: SourceFacts?

    /// - Parameter isNew: false if the file already held these bytes.
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
/// `@unchecked Sendable`: only jobs of the runner's writing thread touch it.
final class BatchFinisher: @unchecked Sendable {
    private let options: BatchOptions
    private let folder: String
    private let sources: SourceGuard
    private var namer: OutputNamer
    private var summary = BatchSummary()
    private var report: Int32 = -1
    /// How many items of the same text an earlier run has reported, by hash: what a report shows of two sources may be equal.
    private var reported: [Int: Int] = [:]
    private var gallery: Gallery?
    private var manifest: SiteManifest?
    private var record: OutputRecord?
    private var progress: ProgressLine?
    private let began = ContinuousClock.now

    /// Creates the output folder, the report and the gallery up front, so that a batch that cannot save its results
    /// never starts.
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
                    // The template has been parsed above.
                    namer = (try? OutputNamer(template: options.nameTemplate, foldsCase: true)) ?? namer
                }
            }
            for path in [options.galleryPath, options.reportPath, options.manifest?.path] {
                // Opening truncates: check first that neither path is one of the sources.
                if let path, path != "-", !options.goesOnWithReport, let reason = Self.refusal(path, sources) {
                    throw FileError("write", path, reason)
                }
            }
            if let path = options.galleryPath {
                gallery = try Gallery(
                    path: path, title: "Contact sheet of \(folder)", groupsBySource: options.recipes.count != 1,
                    refusal: { Self.refusal($0, sources) })
            }
            if let terms = options.record, options.bucket == nil { record = openRecord(terms) }
            if let options = options.manifest { manifest = try SiteManifest(options) }
            if let path = options.reportPath {
                let flags = options.goesOnWithReport ? O_RDWR : O_WRONLY | O_TRUNC
                report = path == "-" ? dup(STDOUT_FILENO) : open(path, flags | O_CREAT | O_CLOEXEC, 0o666)
                guard report >= 0 else { throw FileError("write", path) }
                if options.goesOnWithReport, path != "-" { goOnWithReport() }
            }
        } catch {
            throw CommandFailure(.outputFailed, error.description)
        }
        if let descriptor = options.progressDescriptor {
            progress = ProgressLine(total: options.total, width: ProgressLine.columns(of: descriptor))
        }
    }

    deinit { if report >= 0 { close(report) } }

    /// Names the output of an item, in input order, and writes it if it is a file.
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
            // An item whose output fails has only these members.
            output.line.key = variant.item.key
            output.line.originalOutcome = variant.item.originalOutcome
            output.line.collapsed = variant.item.collapsed
            output.line.damaged = variant.item.damaged
            output.line.milliseconds = variant.item.milliseconds
            do {
                let name = try namer.name(for: naming(item, variant))
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

    /// Reports an item of which nothing is rendered.
    func finish(_ item: BatchItem, _ failure: BatchFailure) { finish(output(item, .failure(failure)).line) }

    /// Reports an item that was rendered elsewhere, unless an earlier run has.
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

    /// Takes over the whole lines of an earlier run's report, and cuts off what follows them.
    private func goOnWithReport() {
        var info = stat()
        guard fstat(report, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return }
        let lines = LineReader(descriptor: report, name: "report")
        var end = 0
        while let text = try? lines.nextLine(), end + text.utf8.count < Int(info.st_size),
            let line = ItemJSON(line: text)
        {
            end += text.utf8.count + 1
            summary.count(line)
            reported[Self.identity(line), default: 0] += 1
        }
        if ftruncate(report, end) != 0 || lseek(report, end, SEEK_SET) < 0 {
            summary.problems.append(
                "the report may repeat items: \(FileError("write", options.reportPath ?? "report"))")
        }
    }

    /// Counts, reports and shows an item, in input order.
    func finish(_ output: BatchOutput) {
        let line = output.line
        summary.count(line)
        tell(line)
        if report >= 0 {
            do {
                try AtomicOutput.write(
                    Array((line.line + "\n").utf8), toDescriptor: report, named: options.reportPath ?? "report")
            } catch {
                summary.problems.append("the report is incomplete: \(error)")
                close(report)
                report = -1
            }
        }
        do {
            try gallery?.add(line, bytes: line.error == nil ? output.variant?.bytes : nil)
        } catch {
            summary.problems.append("the gallery was not written: \(error)")
            gallery = nil
        }
        do {
            try manifest?.add(output)
        } catch {
            summary.problems.append("the manifest was not written: \(error)")
            manifest = nil
        }
        record?.add(output)
        show()
    }

    /// Reports a failed item right away if `onFailure` is set; otherwise keeps the first sources for the summary.
    private func tell(_ line: ItemJSON) {
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
        if let gallery = gallery.take() {
            do {
                try gallery.finish(summary)
            } catch {
                summary.problems.append("the gallery was not written: \(error)")
            }
        }
        if let record = record.take() {
            let outcome = record.finish(
                in: folder, isWhole: summary.readAll, refusal: { sources.refusal(replacing: $0) })
            (summary.orphans, summary.pruned) = (outcome.orphans, outcome.pruned)
            summary.problems += outcome.problems
        }
        if let manifest = manifest.take() {
            do {
                if isInterrupted { throw FileError("write", manifest.path, "the run was interrupted") }
                try manifest.finish()
            } catch {
                summary.problems.append("the manifest was not written: \(error)")
            }
        }
        if report >= 0 {
            if close(report) != 0 {
                let error = FileError("write", options.reportPath ?? "report")
                summary.problems.append("the report may be incomplete: \(error)")
            }
            report = -1
        }
        if progress != nil { send(ProgressLine.clear) }
        return summary
    }

    /// Opens the record. A batch without one reports that only if it has to remove outputs.
    private func openRecord(_ terms: RecordOptions) -> OutputRecord? {
        do {
            return try OutputRecord(of: folder, terms)
        } catch {
            if terms.prunes { summary.problems.append("no output was removed: \(error)") }
            return nil
        }
    }

    /// Why `path` must not be overwritten; nil if it may be. Devices and empty files hold nothing to lose.
    private static func refusal(_ path: String, _ sources: SourceGuard) -> String? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else { return nil }
        return sources.refusal(replacing: path)
    }

    private func naming(_ item: BatchItem, _ variant: BatchVariant) -> OutputNaming {
        OutputNaming(
            source: item.source.source, folder: item.source.folder, name: item.source.name,
            recipe: (item.written, item.canonical), fileExtension: variant.fileExtension,
            width: variant.item.width, height: variant.item.height, key: variant.item.key,
            digest: variant.item.digest, index: item.index, hasSeveralRecipes: item.hasSeveralRecipes)
    }

    private var seconds: Double { began.duration(to: .now) / .seconds(1) }

    private func show() {
        if let text = progress?.update(summary, seconds: seconds) { send(text) }
    }

    /// Writes to the terminal. If the terminal is gone, the batch continues without a progress line.
    private func send(_ text: String) {
        guard let descriptor = options.progressDescriptor else { return }
        do {
            try AtomicOutput.write(Array(text.utf8), toDescriptor: descriptor, named: "the terminal")
        } catch {
            progress = nil
        }
    }
}
