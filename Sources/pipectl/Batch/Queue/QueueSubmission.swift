import Pipeline
import PipelineFleet
import PipelineSupport

/// Fills a queue with the items of a batch and reports what workers make of them, in order of completion.
///
/// Inputs are read as the window of the queue allows. A line of the report is written before its result leaves the queue:
/// a process that goes on after this one was killed loses none, and a report that is there already is gone on with.
struct QueueSubmission {
    let submitter: BatchSubmitter
    let options: BatchOptions
    /// Signs the entries; nil to leave them unsigned.
    let key: QueueKey?
    /// The bytes of the batch's options in the queue.
    let queued: [UInt8]
    /// What the batch had when it was attached to; nil for a new one.
    let attached: BatchState?
    let isInterrupted: @Sendable () -> Bool

    /// Entries that are read ahead of the queue's room for them.
    private static let ahead = 256

    /// - Returns: the summary of what was reported, with earlier runs' report if there is one.
    func run(_ input: BatchInput) async throws(CommandFailure) -> BatchSummary {
        let sources = SourceGuard(input, outputFolder: options.outputFolder, options.bucket)
        let finisher = try BatchFinisher(options, sources: sources)
        let producer = BatchProducer(input, options, sources: sources)
        let (reading, writing) = (OwnedThreads(count: 1), OwnedThreads(count: 1))
        var pending: [[UInt8]] = []
        var submitted = 0
        // How many items have a result that left the queue.
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
                // What an earlier run has submitted.
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
            let seconds = accepted == 0 ? 1.0 : 0
            let results = try await QueueConnection.untilItAnswers { [last] () async throws(BatchError) in
                try await submitter.results(after: last, blockSeconds: seconds)
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

    /// - Returns: how many the queue took; nil if an interruption was requested while it did not answer.
    private func submit(_ pending: [[UInt8]], from first: Int) async throws(CommandFailure) -> Int? {
        var isRepeated = false
        return try await QueueConnection.untilItAnswers { () async throws(BatchError) in
            defer { isRepeated = true }
            do throws(BatchError) { return try await submitter.submit(pending, from: first) } catch {
                // An attempt that seemed to fail was carried out.
                guard isRepeated, case .outOfStep(first, let submitted) = error, submitted > first,
                    submitted <= first + pending.count
                else { throw error }
                return submitted - first
            }
        }
    }

    /// Why an entry is not submitted: its own name is another's, or it is too long.
    private static func refusal(
        _ entry: QueueEntry, _ bytes: Int, _ names: inout Set<ByteString>
    ) -> BatchFailure? {
        if let name = entry.source.name, entry.hasSeveralRecipes || !names.insert(ByteString(name)).inserted,
            QueueOptions.refusal(ofTemplate: name) != nil
        {
            return BatchFailure(
                code: .badName, message: "the name `\(name)` is given to several outputs; add {index} or {key} to it")
        }
        if bytes > BatchTerms.maxBytes {
            return BatchFailure(code: .badManifestLine, message: "source, name and recipes are longer than 64 KiB")
        }
        return nil
    }

    /// The lines of the report that a result stands for.
    private static func lines(of result: ItemResult) -> [ItemJSON] {
        if result.kind != .dead {
            let lines = String(decoding: result.payload, as: UTF8.self).split(separator: "\n").map {
                ItemJSON(line: $0)
            }
            let known = lines.compactMap(\.self)
            if known.count == lines.count, !known.isEmpty { return known }
            return [failed("item \(result.number)", "", "a worker of another version wrote its result")]
        }
        let message = "no worker finished it in \(Readable.count(result.attempt, "try", "tries"))"
        guard let entry = QueueEntry(payload: result.payload) else {
            return [failed("item \(result.number)", "", message)]
        }
        return entry.recipes.map { failed(entry.source.source, $0.canonical, message) }
    }

    private static func failed(_ source: String, _ recipe: String, _ message: String) -> ItemJSON {
        var line = ItemJSON(source: source, recipe: recipe, outcome: .failed)
        line.error = BatchFailure(code: .abandoned, message: message)
        return line
    }
}
