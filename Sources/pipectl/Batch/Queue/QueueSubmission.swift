import Pipeline
import PipelineFleet
import PipelineSupport

/// Submits the items of a batch to a queue and reports the workers' results in order of completion.
///
/// Inputs are read as the queue's window allows. Each result is written to the report before it is removed from the
/// queue. A process that resumes after this process was killed therefore loses no result, and continues the existing
/// report.
struct QueueSubmission {
    let submitter: BatchSubmitter
    let options: BatchOptions
    /// The key that signs the entries, or nil if they are unsigned.
    let key: QueueKey?
    /// The serialized options of the batch.
    let queued: [UInt8]
    /// The state of the batch when this process attached to it, or nil if the batch is new.
    let attached: BatchState?
    let isInterrupted: @Sendable () -> Bool

    /// The number of entries that are read ahead while the queue is full.
    private static let ahead = 256

    /// Runs until the batch has completed or an interruption is requested.
    ///
    /// - Returns: The summary of all reported items, including the report of earlier runs.
    func run(_ input: BatchInput) async throws(CommandFailure) -> BatchSummary {
        let sources = SourceGuard(input, outputFolder: options.outputFolder, options.bucket)
        let finisher = try BatchFinisher(options, sources: sources)
        let producer = BatchProducer(input, options, sources: sources)
        let (reading, writing) = (OwnedThreads(count: 1), OwnedThreads(count: 1))
        var pending: [[UInt8]] = []
        var submitted = 0
        // The number of results that have been removed from the queue.
        var finished = attached.map { $0.done - $0.unacknowledged } ?? 0
        var total = attached?.total
        var last = StreamID.start
        var names: Set<ByteString> = []
        while !isInterrupted(), finished != total {
            var isAtEnd = total != nil
            while !isAtEnd, pending.count < Self.ahead {
                let items = await reading.run { producer.next() }
                isAtEnd = items.isEmpty
                guard let entry = QueueEntry(items) else { break }
                let payload = key?.signed(entry.bytes, queued, of: submitter.id) ?? entry.bytes
                let failure = items[0].failure ?? Self.refusal(entry, payload.count, &names)
                if let failure {
                    await writing.run { for item in entry.items { finisher.finish(item, failure) } }
                    continue
                }
                submitted += 1
                // An earlier run has already submitted the previous items.
                if submitted > attached?.submitted ?? 0 { pending.append(payload) }
            }
            var accepted = 0
            if !pending.isEmpty {
                let first = submitted - pending.count
                guard let count = try await submit(pending, from: first) else { break }
                accepted = count
                pending.removeFirst(count)
            }
            if isAtEnd, pending.isEmpty, total == nil {
                let all = max(submitted, attached?.submitted ?? 0)
                _ = try await QueueConnection.untilItAnswers { () async throws(BatchError) in
                    try await submitter.finish(total: all)
                }
                total = all
            }
            let results = try await QueueConnection.untilItAnswers { [last, accepted] () async throws(BatchError) in
                try await submitter.results(after: last, blockSeconds: accepted == 0 ? 1 : 0)
            }
            guard let results, let newest = results.last?.entry else { continue }
            await writing.run { for result in results { for line in Self.lines(of: result) { finisher.finish(line) } } }
            finished += results.count
            last = newest
            _ = try await QueueConnection.untilItAnswers { () async throws(BatchError) in
                try await submitter.acknowledge(upTo: newest)
            }
        }
        let isComplete = finished == total
        if isComplete {
            _ = try await QueueConnection.untilItAnswers { () async throws(BatchError) in try await submitter.remove() }
        }
        let input = await reading.run { (producer.duplicates, producer.ownOutputs, producer.hasUnreadInput) }
        return await writing.run { finisher.end(input, isInterrupted: !isComplete) }
    }

    /// Submits entries.
    ///
    /// - Returns: The number of entries that the queue accepted, or nil if an interruption was requested while the
    ///   queue was unavailable.
    private func submit(_ pending: [[UInt8]], from first: Int) async throws(CommandFailure) -> Int? {
        var isRepeated = false
        return try await QueueConnection.untilItAnswers { () async throws(BatchError) in
            defer { isRepeated = true }
            do throws(BatchError) { return try await submitter.submit(pending, from: first) } catch {
                // An earlier attempt that seemed to fail has succeeded.
                guard isRepeated, case .outOfStep(first, let submitted) = error, submitted > first,
                    submitted <= first + pending.count
                else { throw error }
                return submitted - first
            }
        }
    }

    /// Returns the reason why an entry is not submitted, or nil if it is. Its output name may already be in use, or the
    /// entry may be too long.
    private static func refusal(
        _ entry: QueueEntry, _ bytes: Int, _ names: inout Set<ByteString>
    ) -> BatchFailure? {
        if let name = entry.source.name, entry.hasSeveralRecipes || !names.insert(ByteString(name)).inserted,
            QueueOptions.refusal(ofTemplate: name) != nil
        {
            return BatchFailure(
                code: .badName, message: "several outputs would have the name `\(name)`; add {index} or {key} to it")
        }
        if bytes > BatchTerms.maxBytes {
            return BatchFailure(
                code: .badManifestLine,
                message: "source, name and recipes together exceed the limit of 64 KiB; use fewer recipes per entry")
        }
        return nil
    }

    /// Returns the report lines for a result.
    private static func lines(of result: ItemResult) -> [ItemJSON] {
        if result.kind != .dead {
            let lines = String(decoding: result.payload, as: UTF8.self).split(separator: "\n").map {
                ItemJSON(line: $0)
            }
            let known = lines.compactMap(\.self)
            if known.count == lines.count, !known.isEmpty { return known }
            return [
                failed(
                    result, "the result was written by a worker of a different version; use the same version everywhere"
                )
            ]
        }
        let message = "no worker finished the item in \(Readable.count(result.attempt, "attempt", "attempts"))"
        let entry = QueueEntry(payload: result.payload)
        return entry?.failed(BatchFailure(code: .abandoned, message: message)) ?? [failed(result, message)]
    }

    private static func failed(_ result: ItemResult, _ message: String) -> ItemJSON {
        ItemJSON(
            source: "item \(result.number)", recipe: "", error: BatchFailure(code: .abandoned, message: message))
    }
}
