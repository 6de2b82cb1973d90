import Pipeline
import PipelineFetching
import PipelineFleet
import PipelineSupport
import Synchronization

/// Renders queue entries and writes their outputs, until the worker is interrupted or, if `isOnce` is true, the queue
/// is empty.
struct QueueWorker: Sendable {
    let worker: BatchWorker
    let pipeline: ImagePipeline
    let bounds: QueueBounds
    let trust: QueueTrust
    /// The maximum number of entries that are processed concurrently.
    let limit: Int
    /// Whether to stop when the queue is empty.
    let isOnce: Bool
    /// Called for each failed item.
    let onFailure: (@Sendable (String) -> Void)?

    private struct State {
        var held: [LeasedItem] = []
        /// The options by batch, including batches that no longer exist.
        var options: [BatchID: [UInt8]] = [:]
        /// The failure that prevents all renders on this machine.
        var blockingFailure: BatchFailure?
        var hasRendered = false
        var done = 0
    }

    /// State that a run shares with its tasks.
    private final class Run: Sendable {
        let state = Mutex(State())
        let writing = OwnedThreads(count: 2)
    }

    /// The maximum number of batches with cached options.
    private static let maxOptions = 1_000
    /// The maximum length of an error message, in characters. An entry may have sixteen messages.
    private static let mostOfMessage = 1_000

    /// Runs the worker.
    ///
    /// - Returns: The number of completed entries.
    func callAsFunction() async throws(CommandFailure) -> Int {
        let run = Run()
        let (freed, free) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let result = await withDiscardingTaskGroup { group in
            let extending = Task { await extend(run) }
            defer { extending.cancel() }
            let result = await Result { () async throws(CommandFailure) in
                var frees = freed.makeAsyncIterator()
                while !Interruption.isRequested, run.state.withLock({ $0.blockingFailure == nil }) {
                    let (running, isAlone) = run.state.withLock { ($0.held.count, $0.held.contains(where: \.isAlone)) }
                    guard running < limit, !isAlone else {
                        _ = await frees.next()
                        continue
                    }
                    let seconds = isOnce && running == 0 ? 0 : 1.0
                    let items = try await QueueConnection.untilItAnswers { () async throws(BatchError) in
                        try await worker.next(count: limit - running, blockSeconds: seconds, isIdle: running == 0)
                    }
                    // The result is nil if the batch has all of its results or an interruption was requested.
                    guard let items, let items else { return }
                    if items.isEmpty, isOnce, running == 0 { return }
                    run.state.withLock { $0.held += items }
                    for item in items {
                        group.addTask {
                            await work(item, run)
                            run.state.withLock { state in state.held.removeAll { $0 == item } }
                            free.yield()
                        }
                    }
                }
            }
            return result
        }
        try result.get()
        if let blockingFailure = run.state.withLock({ $0.blockingFailure }) {
            throw CommandFailure(ProgramExit(blockingFailure.code), blockingFailure.message)
        }
        return run.state.withLock { $0.done }
    }

    /// Extends the leases of the current entries, three times per lease period.
    private func extend(_ run: Run) async {
        var extended = ContinuousClock.now
        while !Task.isCancelled {
            let held = run.state.withLock { $0.held }
            let third = (held.map(\.leaseSeconds).min() ?? 3) / 3
            // Entries acquired in the meantime may have a shorter lease.
            try? await Task.sleep(for: .seconds(min(third, 1)))
            guard !held.isEmpty, extended.duration(to: .now) >= .seconds(third) else { continue }
            extended = .now
            // If the server is unavailable, the next attempt follows after a third of the lease period.
            _ = try? await worker.extend(held)
        }
    }

    private func work(_ item: LeasedItem, _ run: Run) async {
        let result: [UInt8]
        var isFailure = false
        // The result is nil if the batch no longer exists, or if the queue was unavailable until this worker was
        // stopped.
        guard let options = await options(of: item.batch, run) else { return }
        if let entry = QueueEntry(payload: item.payload), let queued = QueueOptions(options) {
            let refusal = trust.refusal(of: item.payload, options, in: item.batch)
            guard let lines = await lines(of: entry, queued, refusal, run) else {
                _ = try? await worker.release([item])
                return
            }
            isFailure = lines.contains { $0.outcome == .failed }
            if let onFailure { for line in lines { line.failureText.map(onFailure) } }
            let bytes = Array(lines.map(\.line).joined(separator: "\n").utf8)
            result = bytes.count <= BatchTerms.maxBytes ? bytes : Self.tooLong(entry, bytes.count)
            isFailure = isFailure || bytes.count > BatchTerms.maxBytes
        } else {
            // A different version wrote the entry. The submitter reports this.
            (result, isFailure) = ([], true)
        }
        let isDone = try? await QueueConnection.untilItAnswers { [isFailure] () async throws(BatchError) in
            try await worker.complete(item, result, isFailure: isFailure)
        }
        // Otherwise, another worker has acquired the entry.
        if isDone == true { run.state.withLock { $0.done += 1 } }
    }

    /// Returns the result that replaces a result longer than the queue's limit. Results are long because the line of
    /// each recipe repeats the source.
    private static func tooLong(_ entry: QueueEntry, _ bytes: Int) -> [UInt8] {
        let failure = BatchFailure(
            code: .outputFailed,
            message:
                "the outputs were written, but their report of \(bytes) bytes exceeds the limit of the queue; use fewer recipes "
                + "for a source with a name this long")
        let line = ItemJSON(source: String(entry.source.source.prefix(1_000)), recipe: "", error: failure)
        return Array(line.line.utf8)
    }

    private func options(of batch: BatchID, _ run: Run) async -> [UInt8]? {
        if let known = run.state.withLock({ $0.options[batch] }) { return known }
        let state = try? await QueueConnection.untilItAnswers { () async throws(BatchError) in
            try await worker.state(of: batch)
        }
        guard let options = state?.options else { return nil }
        run.state.withLock { state in
            if state.options.count >= Self.maxOptions { state.options = [:] }
            state.options[batch] = options
        }
        return options
    }

    /// Renders an entry. Returns the report lines of its recipes, or nil if this worker cannot render at all.
    ///
    /// - Parameter refusal: The reason why the entry is refused, or nil if it is accepted.
    private func lines(
        of entry: QueueEntry, _ queued: QueueOptions, _ refusal: BatchFailure?, _ run: Run
    ) async -> [ItemJSON]? {
        if let refusal = refusal ?? bounds.refusal(ofSource: entry.source.source) {
            return entry.failed(refusal)
        }
        let folder: OpenFolder?
        do throws(BatchFailure) { folder = try bounds.folder(for: queued.output) } catch {
            return entry.failed(error)
        }
        guard folder != nil || pipeline.buckets != nil else {
            return entry.failed(
                BatchFailure(code: .outputRefused, message: "this worker cannot write to a bucket; set `s3`"))
        }
        let renderer = PipelineBatch(pipeline: pipeline, policy: queued.policy, outputs: nil)
        let outcomes = await withTaskGroup(of: (Int, BatchOutcome).self) { group in
            for (number, render) in renderer.renders(of: entry.items).enumerated() {
                group.addTask { (number, await render()) }
            }
            return await group.reduce(into: [Int: BatchOutcome]()) { $0[$1.0] = $1.1 }
        }
        for outcome in outcomes.values {
            switch outcome {
            case .variant: run.state.withLock { $0.hasRendered = true }
            case .failure(let failure) where failure.meansNoWorker:
                let isUnable = run.state.withLock { state in
                    if !state.hasRendered { state.blockingFailure = failure }
                    return !state.hasRendered
                }
                if isUnable { return nil }
            case .failure: break
            }
        }
        return await written(entry, outcomes, to: queued, in: folder, run).map { output in
            var line = output.line
            if let error = line.error { line.error?.message = String(error.message.prefix(Self.mostOfMessage)) }
            return line
        }
    }

    /// Writes the outputs of an entry.
    ///
    /// - Parameter folder: The folder that must contain the outputs, or nil if they are written to a bucket.
    private func written(
        _ entry: QueueEntry, _ outcomes: [Int: BatchOutcome], to queued: QueueOptions, in folder: OpenFolder?,
        _ run: Run
    ) async -> [BatchOutput] {
        var options = BatchOptions(
            recipes: [], outputFolder: queued.output,
            nameTemplate: queued.template(hasSeveralRecipes: entry.hasSeveralRecipes),
            canonicalRecipe: { .success($0) })
        options.bounds = folder
        // {index} and {key} make names unique even if case is ignored.
        options.foldsCase = { _ in false }
        if let store = pipeline.buckets, let folder = try? SourceURL(stored: queued.output, isFolder: true) {
            options.bucket = BucketOutput(store: store, folder: folder, cacheControl: queued.cacheControl)
        }
        let sources = SourceGuard(
            BatchInput(arguments: [entry.source.source]), outputFolder: queued.output, options.bucket)
        var outputs: [BatchOutput]
        do throws(CommandFailure) {
            outputs = try await run.writing.result { [options] () throws(CommandFailure) in
                // Use a new finisher, so that names do not depend on earlier outputs of this worker.
                let finisher = try BatchFinisher(options, sources: sources)
                return entry.items.enumerated().map { number, item in
                    finisher.output(item, outcomes[number] ?? .failure(BatchFailure(code: .cancelled, message: "")))
                }
            }
        } catch {
            outputs = entry.failed(BatchFailure(code: .outputFailed, message: error.message)).map {
                BatchOutput(line: $0)
            }
        }
        if let bucket = options.bucket {
            for at in outputs.indices {
                outputs[at] = await bucket.write(outputs[at], on: run.writing, sources)
            }
        }
        return outputs
    }
}
