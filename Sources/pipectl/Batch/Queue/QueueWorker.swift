import Pipeline
import PipelineFetching
import PipelineFleet
import PipelineSupport
import Synchronization

/// Renders and writes what a queue hands out, until it is interrupted or, on request, nothing is left.
struct QueueWorker: Sendable {
    let worker: BatchWorker
    let pipeline: ImagePipeline
    let bounds: QueueBounds
    let trust: QueueTrust
    /// Entries at once.
    let limit: Int
    /// Whether to end once the queue has nothing to hand out.
    let isOnce: Bool
    /// Called for each failed item.
    let onFailure: (@Sendable (String) -> Void)?

    private struct State {
        var held: [LeasedItem] = []
        /// By batch; of those that are gone too.
        var options: [BatchID: [UInt8]] = [:]
        /// Why nothing can be rendered here.
        var unable: BatchFailure?
        var hasRendered = false
        var done = 0
    }

    /// What a run shares with its tasks.
    private final class Run: Sendable {
        let state = Mutex(State())
        let writing = OwnedThreads(count: 2)
    }

    /// Batches whose options are remembered.
    private static let mostOptions = 1_000
    /// Characters of an error's message, of which an entry may have sixteen.
    private static let mostOfMessage = 1_000

    /// - Returns: how many entries it has completed.
    func callAsFunction() async throws(CommandFailure) -> Int {
        let run = Run()
        let (freed, free) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let result = await withDiscardingTaskGroup { group in
            let extending = Task { await extend(run) }
            defer { extending.cancel() }
            let result = await Result { () async throws(CommandFailure) in
                var frees = freed.makeAsyncIterator()
                while !Interruption.isRequested, run.state.withLock({ $0.unable == nil }) {
                    let (running, isAlone) = run.state.withLock { ($0.held.count, $0.held.contains(where: \.isAlone)) }
                    guard running < limit, !isAlone else {
                        _ = await frees.next()
                        continue
                    }
                    let seconds = isOnce && running == 0 ? 0 : 1.0
                    let items = try await QueueConnection.untilItAnswers { () async throws(BatchError) in
                        try await worker.next(count: limit - running, blockSeconds: seconds, isIdle: running == 0)
                    }
                    // nil: the batch has all its results, or an interruption.
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
        if let unable = run.state.withLock({ $0.unable }) {
            throw CommandFailure(ProgramExit(unable.code), unable.message)
        }
        return run.state.withLock { $0.done }
    }

    /// Keeps the leases of what is held, three times a lease.
    private func extend(_ run: Run) async {
        var extended = ContinuousClock.now
        while !Task.isCancelled {
            let held = run.state.withLock { $0.held }
            let third = (held.map(\.leaseSeconds).min() ?? 3) / 3
            // What is taken meanwhile may have a shorter lease.
            try? await Task.sleep(for: .seconds(min(third, 1)))
            guard !held.isEmpty, extended.duration(to: .now) >= .seconds(third) else { continue }
            extended = .now
            // A server that is away is asked again a third later.
            _ = try? await worker.extend(held)
        }
    }

    private func work(_ item: LeasedItem, _ run: Run) async {
        let result: [UInt8]
        var isFailure = false
        // nil: the batch is gone, or the queue did not answer until this worker was to end.
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
            // Another version has written it. The submitter reports it.
            (result, isFailure) = ([], true)
        }
        let isDone = try? await QueueConnection.untilItAnswers { [isFailure] () async throws(BatchError) in
            try await worker.complete(item, result, isFailure: isFailure)
        }
        // Otherwise another worker has taken it over.
        if isDone == true { run.state.withLock { $0.done += 1 } }
    }

    /// The result of an entry whose own is longer than the queue takes: each recipe repeats the source.
    private static func tooLong(_ entry: QueueEntry, _ bytes: Int) -> [UInt8] {
        var line = ItemJSON(source: String(entry.source.source.prefix(1_000)), recipe: "", outcome: .failed)
        line.error = BatchFailure(
            code: .outputFailed,
            message: "the outputs are written, but their report has \(bytes) bytes, more than the queue takes; give a "
                + "source with so long a name fewer recipes")
        return Array(line.line.utf8)
    }

    private func options(of batch: BatchID, _ run: Run) async -> [UInt8]? {
        if let known = run.state.withLock({ $0.options[batch] }) { return known }
        let state = try? await QueueConnection.untilItAnswers { () async throws(BatchError) in
            try await worker.state(of: batch)
        }
        guard let options = state?.options else { return nil }
        run.state.withLock { state in
            if state.options.count >= Self.mostOptions { state.options = [:] }
            state.options[batch] = options
        }
        return options
    }

    /// The lines of an entry that is not written.
    private static func failed(_ entry: QueueEntry, _ failure: BatchFailure) -> [ItemJSON] {
        entry.recipes.map { recipe in
            var line = ItemJSON(source: entry.source.source, recipe: recipe.canonical, outcome: .failed)
            line.error = failure
            return line
        }
    }

    /// What the report says of each recipe; nil if this worker cannot render at all.
    ///
    /// - Parameter refusal: why the entry is not rendered.
    private func lines(
        of entry: QueueEntry, _ queued: QueueOptions, _ refusal: BatchFailure?, _ run: Run
    ) async -> [ItemJSON]? {
        if let refusal = refusal ?? bounds.refusal(ofSource: entry.source.source) {
            return Self.failed(entry, refusal)
        }
        let folder: OpenFolder?
        do throws(BatchFailure) { folder = try bounds.folder(for: queued.output) } catch {
            return Self.failed(entry, error)
        }
        guard folder != nil || pipeline.buckets != nil else {
            return Self.failed(entry, BatchFailure(code: .outputRefused, message: "this worker has no object store"))
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
                    if !state.hasRendered { state.unable = failure }
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

    /// Writes what an entry's recipes made.
    ///
    /// - Parameter folder: the folder that outputs may not leave; nil for a bucket.
    private func written(
        _ entry: QueueEntry, _ outcomes: [Int: BatchOutcome], to queued: QueueOptions, in folder: OpenFolder?,
        _ run: Run
    ) async -> [BatchOutput] {
        var options = BatchOptions(
            recipes: [], outputFolder: queued.output,
            nameTemplate: queued.template(hasSeveralRecipes: entry.hasSeveralRecipes),
            canonicalRecipe: { .success($0) })
        options.bounds = folder
        // {index} and {key} tell names apart in any case.
        options.foldsCase = { _ in false }
        if let store = pipeline.buckets, let folder = try? SourceURL(s3: queued.output, isFolder: true) {
            options.bucket = BucketOutput(store: store, folder: folder, cacheControl: queued.cacheControl)
        }
        let sources = SourceGuard(
            BatchInput(arguments: [entry.source.source]), outputFolder: queued.output, options.bucket)
        var outputs: [BatchOutput]
        do throws(CommandFailure) {
            outputs = try await run.writing.result { [options] () throws(CommandFailure) in
                // One of its own, so that names do not depend on what this worker has written before.
                let finisher = try BatchFinisher(options, sources: sources)
                return entry.items.enumerated().map { number, item in
                    finisher.output(item, outcomes[number] ?? .failure(BatchFailure(code: .cancelled, message: "")))
                }
            }
        } catch {
            outputs = Self.failed(entry, BatchFailure(code: .outputFailed, message: error.message)).map {
                BatchOutput(line: $0)
            }
        }
        if let bucket = options.bucket {
            for at in outputs.indices {
                outputs[at] = await bucket.write(outputs[at]) { path in
                    await run.writing.run { sources.refusal(replacing: path) }
                }
            }
        }
        return outputs
    }
}
