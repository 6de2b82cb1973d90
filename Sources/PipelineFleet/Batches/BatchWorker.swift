import PipelineSupport

/// Leases items from batches and completes them, over two connections.
///
/// Each worker is a new consumer, so a restarted worker does not mistake its predecessor's items for its own.
package struct BatchWorker: Sendable {
    /// The batch to serve, or nil to serve all open batches.
    package let batch: BatchID?

    /// The maximum number of items per call. With the largest payloads, they take half of
    /// `RedisConnection.Configuration.maxReplyBytes`.
    package static let maxItems = 256
    /// The maximum number of batches that one call queries. If more batches are open, they are chosen at random.
    private static let maxBatches = 64
    /// The number of seconds after which a waiting worker looks for new batches and expired leases. A quarter of a
    /// lease is used if that is less. Defaults to 1.
    package var pollSeconds = 1.0

    private let consumer = RedisWord(BatchID().description)
    private let commands: RedisConnection
    /// The connection that blocks while it waits for items.
    private let waits: RedisConnection
    private let timeoutSeconds: Double

    package init(_ connection: RedisConnection.Configuration, batch: BatchID? = nil) {
        self.batch = batch
        (commands, waits) = (RedisConnection(connection), RedisConnection(connection))
        timeoutSeconds = connection.timeoutSeconds
    }

    /// Leases items: first items with an expired lease, then new items. Several batches are queried in random order.
    ///
    /// A previously leased item is returned alone, and only while the worker holds no items. If the item has been
    /// leased as often as its batch allows, and at least twice, it becomes dead instead. An item that kills its workers
    /// therefore does not stop the other items or make them fail. If the call fails, items may have been leased
    /// nevertheless. They become available again when their lease expires, and the failed call counts as a try.
    ///
    /// - Parameters:
    ///   - count: the maximum number of items, 1 to `maxItems`.
    ///   - blockSeconds: the number of seconds to wait for an item. If 0, the call does not wait. Concurrent calls wait
    ///     one after the other.
    ///   - isIdle: whether the worker holds no items. Defaults to true.
    /// - Returns: the items, or nil if `batch` is complete. The array is empty if no item became available in time.
    /// - Throws: `gone` and `unknownFormat` only if they concern `batch`.
    package func next(
        count: Int = 1, blockSeconds: Double = 0, isIdle: Bool = true
    ) async throws(BatchError) -> [LeasedItem]? {
        let deadline = SystemClock.monotonic.seconds + blockSeconds
        while true {
            guard let poll = try await poll(min(max(count, 1), Self.maxItems), isIdle) else { return nil }
            let seconds = deadline - SystemClock.monotonic.seconds
            if !poll.items.isEmpty || seconds <= 0 { return poll.items }
            try await wait(poll, atMost: seconds)
        }
    }

    /// The result of querying all batches.
    private struct Poll {
        var items: [LeasedItem] = []
        /// The batches that have no available item, each with the ID of the newest item that was ever leased.
        var idle: [(batch: BatchID, newest: RedisWord)] = []
        var waitSeconds: Double
    }

    /// Queries the batches once. Returns nil if `batch` is complete.
    private func poll(_ count: Int, _ isIdle: Bool) async throws(BatchError) -> Poll? {
        var poll = Poll(waitSeconds: pollSeconds)
        for id in try await batches() where poll.items.count < count && !poll.items.contains(where: \.isAlone) {
            let isFree: RedisWord = isIdle && poll.items.isEmpty ? "1" : "0"
            let words = [consumer, RedisWord(count - poll.items.count), isFree]
            let reply = try await commands.run(.take, [(id, words)])[0]
            switch reply {
            case .success(.status) where batch != nil: return nil
            case .success(.status): try await removeFromIndex(id)
            case .failure(.gone) where batch == nil: try await removeFromIndex(id)
            case .failure(.unknownFormat) where batch == nil: break
            case .success(let reply): try add(reply, id, to: &poll)
            case .failure(let error): throw error
            }
        }
        return poll
    }

    /// Removes a batch from the index if it is still complete or no longer exists.
    private func removeFromIndex(_ id: BatchID) async throws(BatchError) {
        let reply = try await commands.batch([["SREM", BatchID.index, RedisWord(id.description)]])[0]
        guard case .integer = reply else { throw commands.failure(reply) }
    }

    private func batches() async throws(BatchError) -> [BatchID] {
        if let batch { return [batch] }
        let reply = try await commands.batch([["SRANDMEMBER", BatchID.index, RedisWord(Self.maxBatches)]])[0]
        guard let members = reply.elements else { throw commands.failure(reply) }
        return members.compactMap { $0.text.flatMap(BatchID.init) }.shuffled()
    }

    /// Adds the reply to `BatchScript.take` to `poll`.
    private func add(_ reply: RedisReply, _ id: BatchID, to poll: inout Poll) throws(BatchError) {
        guard let parts = reply.elements, parts.count == 3, case .integer(let lease) = parts[0],
            case .bytes(let newest) = parts[1], let leased = parts[2].elements
        else { throw commands.failure(reply) }
        if leased.isEmpty { poll.idle.append((id, RedisWord(newest))) }
        poll.waitSeconds = min(poll.waitSeconds, Double(lease) / 4000)
        for pair in leased {
            guard let pair = pair.elements, pair.count == 2, let entry = StreamEntry(pair[0]),
                case .integer(let attempt) = pair[1], let payload = entry.fields["payload"],
                let number = entry.fields["number"].flatMap(StreamEntry.number)
            else { throw commands.failure(reply) }
            poll.items.append(
                LeasedItem(
                    batch: id, entry: entry.id, number: number, payload: payload, attempt: attempt,
                    leaseSeconds: Double(lease) / 1000))
        }
    }

    /// Waits until a batch has an item that was never leased, or until the next query is due.
    ///
    /// Unlike XREADGROUP, XREAD does not lease items. A cancelled wait or a lost reply therefore does not count as a
    /// try, and waiting for several batches never returns more items than requested.
    private func wait(_ poll: Poll, atMost seconds: Double) async throws(BatchError) {
        let seconds = min(seconds, poll.waitSeconds)
        guard !poll.idle.isEmpty else {
            do { return try await Task.sleep(for: .seconds(seconds)) } catch {
                throw .redis(RedisError(.cancelled, commands.url, "the call was cancelled"))
            }
        }
        _ = try await waits.read(
            poll.idle.map { ($0.batch.items, $0.newest) }, count: 1, blockSeconds: seconds,
            timeoutSeconds: timeoutSeconds)
    }

    /// Stores an item's result if this worker still holds the item. The call may be repeated after a connection error.
    ///
    /// - Parameters:
    ///   - result: the result, which must not exceed `BatchTerms.maxBytes`.
    ///   - isFailure: whether the result counts as a failure.
    /// - Returns: whether the result was stored by this call. A repeated call returns false if the first call stored
    ///   the result.
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
    /// - Returns: the items that this worker no longer holds. Stop working on them.
    package func extend(_ items: [LeasedItem]) async throws(BatchError) -> [LeasedItem] {
        try await change(items, .extend)
    }

    /// Returns items that this worker will not complete. Other workers may lease them at once, and this try is not
    /// counted.
    ///
    /// - Returns: the items that this worker no longer held.
    @discardableResult package func release(_ items: [LeasedItem]) async throws(BatchError) -> [LeasedItem] {
        try await change(items, .release)
    }

    /// Runs a script that returns 1 for each item that this worker still holds. Returns the other items.
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

    /// Returns the arguments by which the scripts recognize that this worker still holds the item.
    private func token(_ item: LeasedItem) -> [RedisWord] {
        [consumer, RedisWord(item.entry.description), RedisWord(item.attempt)]
    }

    /// Returns the state of a batch with its options.
    package func state(of batch: BatchID) async throws(BatchError) -> BatchState {
        try await commands.state(of: batch)
    }

    /// Closes both connections, which ends all calls at once.
    package func close() {
        commands.close()
        waits.close()
    }
}
