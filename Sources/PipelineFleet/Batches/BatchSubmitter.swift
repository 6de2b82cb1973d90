/// Submits the items of a batch and reads the results, over two connections.
///
/// A submitter may stop at any time. Another submitter with the batch's ID can continue: `attach` returns the number of
/// items, and unacknowledged results can be read again. Alternate between submitting, reading and acknowledging,
/// because once the window is full, `submit` adds no items until results are acknowledged.
package struct BatchSubmitter: Sendable {
    package let id: BatchID
    /// The maximum number of items and results in Redis at a time, at least 1. Defaults to 10,000.
    package var window = 10_000

    /// The maximum number of results per read. With the largest payloads, they take half of
    /// `RedisConnection.Configuration.maxReplyBytes`.
    package static let maxResults = 256
    /// The maximum number of items, and the approximate maximum number of bytes, that one call of `submit` adds. They
    /// are limited because a script blocks the complete server while it runs.
    private static let (maxItems, maxBytes) = (1_000, 4 << 20)

    private let commands: RedisConnection
    /// The connection that blocks while it waits for results.
    private let reads: RedisConnection
    private let timeoutSeconds: Double

    package init(_ connection: RedisConnection.Configuration, batch id: BatchID = BatchID()) {
        self.id = id
        (commands, reads) = (RedisConnection(connection), RedisConnection(connection))
        timeoutSeconds = connection.timeoutSeconds
    }

    /// Creates the batch. The call may be repeated after an error.
    ///
    /// - Parameter options: the data that workers need in addition to the items, at most `BatchTerms.maxBytes`.
    package func create(options: [UInt8] = [], terms: BatchTerms = BatchTerms()) async throws(BatchError) {
        guard options.count <= BatchTerms.maxBytes else { throw .tooLarge(item: nil, bytes: options.count) }
        func milliseconds(_ seconds: Double) -> RedisWord { RedisWord(Int(min(max(seconds, 0.001), 1e9) * 1000)) }
        let tries = RedisWord(min(max(terms.tries, 1), 1_000))
        let (lease, keep) = (milliseconds(terms.leaseSeconds), milliseconds(terms.keepSeconds))
        _ = try await commands.run(.create, id, [RedisWord(options), tries, lease, keep])
        // The order matters, because workers remove batches without state from the index.
        try await list()
    }

    /// Returns the state of the batch, so that the caller can continue with item `submitted`, and postpones its expiry.
    package func attach() async throws(BatchError) -> BatchState {
        _ = try await commands.run(.touch, id)
        let state = try await state()
        // The index may have been evicted, or the previous submitter may have stopped before it listed the batch.
        if !state.isComplete { try await list() }
        return state
    }

    /// Adds the batch to the index.
    private func list() async throws(BatchError) {
        let reply = try await commands.batch([["SADD", BatchID.index, RedisWord(id.description)]])[0]
        guard case .integer = reply else { throw commands.failure(reply) }
    }

    /// Returns the state of the batch.
    package func state() async throws(BatchError) -> BatchState { try await commands.state(of: id) }

    /// Adds as many items from the front of `payloads` as the window and the limits of a call allow.
    ///
    /// - Parameters:
    ///   - payloads: the items, at most `BatchTerms.maxBytes` each. If one is larger, no item is added.
    ///   - first: the number of the first item, which is the number of items that were submitted before it.
    /// - Returns: the number of items that were added, or 0 if the window is full.
    /// - Throws: `outOfStep` if `first` is wrong. If a connection error occurs, the items may have been added
    ///   nevertheless, and a repeated call then throws `outOfStep`.
    package func submit(_ payloads: [[UInt8]], from first: Int) async throws(BatchError) -> Int {
        for (index, payload) in payloads.enumerated() where payload.count > BatchTerms.maxBytes {
            throw .tooLarge(item: first + index, bytes: payload.count)
        }
        var bytes = 0
        let part = payloads.prefix(Self.maxItems).prefix { payload in
            bytes += payload.count
            return bytes <= Self.maxBytes
        }
        let reply = try await commands.run(
            .submit, id, [RedisWord(first), RedisWord(window)] + part.map { RedisWord($0) })
        guard let parts = reply.elements, parts.count == 2, case .integer(let submitted) = parts[0],
            case .integer(let count) = parts[1]
        else { throw commands.failure(reply) }
        switch count {
        case -1: throw .outOfStep(expected: first, submitted: submitted)
        case -2: throw .finished(id, total: submitted)
        default: return count
        }
    }

    /// Declares that all items have been submitted. The call may be repeated.
    ///
    /// - Throws: `outOfStep` if the batch has a different number of items.
    package func finish(total: Int) async throws(BatchError) {
        let reply = try await commands.run(.finish, id, [RedisWord(total)])
        guard case .integer(let submitted) = reply else { throw commands.failure(reply) }
        guard submitted == total else { throw .outOfStep(expected: total, submitted: submitted) }
    }

    /// Reads results in order of completion.
    ///
    /// An item has one result. Every submitter reads the result until a submitter acknowledges it, so ignore the
    /// numbers of items that you have already processed.
    ///
    /// - Parameters:
    ///   - last: the last result that was read, or `.start` to begin with the oldest result in Redis.
    ///   - count: the maximum number of results, 1 to `maxResults`.
    ///   - blockSeconds: the number of seconds to wait for a result. If 0, the call does not wait. Concurrent calls
    ///     wait one after the other.
    /// - Returns: the results. The array is empty if no result arrived in time.
    package func results(
        after last: StreamID = .start, count: Int = maxResults, blockSeconds: Double = 0
    ) async throws(BatchError) -> [ItemResult] {
        // XREAD would wait in vain for a batch that no longer exists.
        _ = try await reads.run(.touch, id)
        let reply = try await reads.read(
            [(id.results, RedisWord(last.description))], count: min(max(count, 1), Self.maxResults),
            blockSeconds: blockSeconds, timeoutSeconds: timeoutSeconds)
        if reply == .null { return [] }
        // The reply is one pair of a stream's name and its entries.
        guard let pair = reply.elements?.first?.elements, pair.count == 2, let entries = pair[1].elements else {
            throw reads.failure(reply)
        }
        var results: [ItemResult] = []
        for entry in entries {
            guard let result = StreamEntry(entry).flatMap(ItemResult.init) else { throw reads.failure(entry) }
            results.append(result)
        }
        return results
    }

    /// Deletes a result and all older results, once the caller has stored them. The call may be repeated.
    package func acknowledge(upTo last: StreamID) async throws(BatchError) {
        let reply = try await commands.batch([["XTRIM", id.results, "MINID", "=", RedisWord(last.next.description)]])[0]
        guard case .integer = reply else { throw commands.failure(reply) }
    }

    /// Deletes the batch. If workers complete its items later, they receive the error `gone`.
    package func remove() async throws(BatchError) {
        let unlist: [RedisWord] = ["SREM", BatchID.index, RedisWord(id.description)]
        for reply in try await commands.batch([unlist, ["UNLINK"] + id.keys]) {
            guard case .integer = reply else { throw commands.failure(reply) }
        }
    }

    /// Closes both connections, which ends all calls at once.
    package func close() {
        commands.close()
        reads.close()
    }
}
