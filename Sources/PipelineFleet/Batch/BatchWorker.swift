import PipelineSupport

/// Takes items of batches and completes them, on two connections of its own.
///
/// Each worker is a new consumer, so a restarted one does not mistake its predecessor's items for its own.
package struct BatchWorker: Sendable {
    /// The batch to serve; nil to serve all open ones.
    package let batch: BatchID?

    /// The most items of one call; with the largest payloads half of `RedisConnection.Configuration.maxReplyBytes`.
    package static let maxItems = 256
    /// The most batches that one call asks; a random choice if more are open.
    private static let maxBatches = 64
    /// Seconds after which a waiting worker looks for new batches and expired leases; a quarter of a lease if that is
    /// less. Default 1.
    package var lookSeconds = 1.0

    private let consumer = RedisWord(BatchID().description)
    private let commands: RedisConnection
    /// Blocks while it waits for items.
    private let waits: RedisConnection
    private let timeoutSeconds: Double

    package init(_ connection: RedisConnection.Configuration, batch: BatchID? = nil) {
        self.batch = batch
        (commands, waits) = (RedisConnection(connection), RedisConnection(connection))
        timeoutSeconds = connection.timeoutSeconds
    }

    /// Takes items: first those whose lease has run out, then new ones. Several batches are asked in random order.
    ///
    /// An item that was handed out before comes alone, and only while the worker holds nothing. If it was handed out as often
    /// as its batch allows, and twice at least, it becomes dead instead: an item that kills its workers neither stops the
    /// others nor makes them fail. If the call fails, items may have been handed out in vain: they return after their
    /// lease, with that try counted.
    ///
    /// - Parameters:
    ///   - count: the most items, 1 to `maxItems`.
    ///   - blockSeconds: how long to wait for an item, 0 not to wait. Concurrent calls wait one after the other.
    ///   - isIdle: whether the worker holds no items. Default true.
    /// - Returns: no items if none came in time; nil if `batch` is complete.
    /// - Throws: `gone` and `unknownFormat` only about `batch`.
    package func next(
        count: Int = 1, blockSeconds: Double = 0, isIdle: Bool = true
    ) async throws(BatchError) -> [LeasedItem]? {
        let deadline = SystemClock.monotonic.seconds + blockSeconds
        while true {
            guard let look = try await look(min(max(count, 1), Self.maxItems), isIdle) else { return nil }
            let seconds = deadline - SystemClock.monotonic.seconds
            if !look.items.isEmpty || seconds <= 0 { return look.items }
            try await wait(look, atMost: seconds)
        }
    }

    /// The outcome of asking all batches.
    private struct Look {
        var items: [LeasedItem] = []
        /// Batches without an item to hand out, each with the newest item ever handed out.
        var idle: [(batch: BatchID, newest: RedisWord)] = []
        var waitSeconds: Double
    }

    /// nil if `batch` is complete.
    private func look(_ count: Int, _ isIdle: Bool) async throws(BatchError) -> Look? {
        var look = Look(waitSeconds: lookSeconds)
        for id in try await batches() where look.items.count < count && !look.items.contains(where: \.isAlone) {
            let isFree: RedisWord = isIdle && look.items.isEmpty ? "1" : "0"
            let words = [consumer, RedisWord(count - look.items.count), isFree]
            let reply = try await commands.run(.take, [(id, words)])[0]
            switch reply {
            case .success(.status) where batch != nil: return nil
            case .success(.status): try await unlist(id)
            case .failure(.gone) where batch == nil: try await unlist(id)
            case .failure(.unknownFormat) where batch == nil: break
            case .success(let reply): try add(reply, id, to: &look)
            case .failure(let error): throw error
            }
        }
        return look
    }

    /// Removes a batch that stays complete or gone from the index.
    private func unlist(_ id: BatchID) async throws(BatchError) {
        let reply = try await commands.batch([["SREM", BatchID.index, RedisWord(id.description)]])[0]
        guard case .integer = reply else { throw commands.failure(reply) }
    }

    private func batches() async throws(BatchError) -> [BatchID] {
        if let batch { return [batch] }
        let reply = try await commands.batch([["SRANDMEMBER", BatchID.index, RedisWord(Self.maxBatches)]])[0]
        guard let members = reply.elements else { throw commands.failure(reply) }
        return members.compactMap { $0.text.flatMap(BatchID.init) }.shuffled()
    }

    /// Reads the reply to `BatchScript.take`.
    private func add(_ reply: RedisReply, _ id: BatchID, to look: inout Look) throws(BatchError) {
        guard let parts = reply.elements, parts.count == 3, case .integer(let lease) = parts[0],
            case .bytes(let newest) = parts[1], let taken = parts[2].elements
        else { throw commands.failure(reply) }
        if taken.isEmpty { look.idle.append((id, RedisWord(newest))) }
        look.waitSeconds = min(look.waitSeconds, Double(lease) / 4000)
        for pair in taken {
            guard let pair = pair.elements, pair.count == 2, let entry = StreamEntry(pair[0]),
                case .integer(let attempt) = pair[1], let payload = entry.fields["payload"],
                let number = entry.fields["number"].flatMap(StreamEntry.number)
            else { throw commands.failure(reply) }
            look.items.append(
                LeasedItem(
                    batch: id, entry: entry.id, number: number, payload: payload, attempt: attempt,
                    leaseSeconds: Double(lease) / 1000))
        }
    }

    /// Waits until a batch has an item that was never handed out, or it is time to look again.
    ///
    /// XREAD, unlike XREADGROUP, hands out nothing: a cancelled wait or a lost reply costs no try, and waiting on
    /// several batches never yields more items than were asked for.
    private func wait(_ look: Look, atMost seconds: Double) async throws(BatchError) {
        let seconds = min(seconds, look.waitSeconds)
        guard !look.idle.isEmpty else {
            do { return try await Task.sleep(for: .seconds(seconds)) } catch {
                throw .redis(RedisError(.cancelled, commands.url, "the call was cancelled"))
            }
        }
        _ = try await waits.read(
            look.idle.map { ($0.batch.items, $0.newest) }, count: 1, blockSeconds: seconds,
            timeoutSeconds: timeoutSeconds)
    }

    /// Stores an item's result if the item is still this worker's. It may be repeated after an error of the connection.
    ///
    /// - Parameters:
    ///   - result: at most `BatchTerms.maxBytes`.
    ///   - isFailure: whether the result is to count as a failure.
    /// - Returns: whether the result counts. A repeated call also returns false if the first one stored the result.
    package func complete(
        _ item: LeasedItem, _ result: [UInt8], isFailure: Bool = false
    ) async throws(BatchError) -> Bool {
        guard result.count <= BatchTerms.maxBytes else { throw .tooLarge(item: item.number, bytes: result.count) }
        let kind: ItemResult.Kind = isFailure ? .failure : .success
        let words = token(item) + [RedisWord(item.number), RedisWord(kind.rawValue), RedisWord(result)]
        return try await commands.run(.complete, item.batch, words) == .integer(1)
    }

    /// Restarts the leases of items. Call it about three times per `leaseSeconds`.
    ///
    /// - Returns: the items that are no longer this worker's; work on them is wasted.
    package func extend(_ items: [LeasedItem]) async throws(BatchError) -> [LeasedItem] {
        try await change(items, .extend)
    }

    /// Gives back items that this worker will not complete: others may take them at once, and the try does not count.
    ///
    /// - Returns: the items that were no longer this worker's.
    @discardableResult package func release(_ items: [LeasedItem]) async throws(BatchError) -> [LeasedItem] {
        try await change(items, .release)
    }

    /// Runs a script that returns 1 for an item that is still this worker's; returns the other items.
    private func change(_ items: [LeasedItem], _ script: BatchScript) async throws(BatchError) -> [LeasedItem] {
        var lost: [LeasedItem] = []
        for (item, result) in zip(items, try await commands.run(script, items.map { ($0.batch, token($0)) })) {
            switch result {
            case .success(.integer(1)): break
            case .success, .failure(.gone): lost.append(item)
            case .failure(let error): throw error
            }
        }
        return lost
    }

    /// The words by which Redis recognizes that an item is still this worker's.
    private func token(_ item: LeasedItem) -> [RedisWord] {
        [consumer, RedisWord(item.entry.description), RedisWord(item.attempt)]
    }

    /// Where a batch stands, with its options.
    package func state(of batch: BatchID) async throws(BatchError) -> BatchState {
        try await commands.state(of: batch)
    }

    /// Ends both connections and every call on them, at once.
    package func close() {
        commands.close()
        waits.close()
    }
}
