import PipelineSupport

/// Follows the fleet's purges over a separate connection.
package struct PurgeReader: Sendable {
    package var stream: PurgeStream
    package var connection: RedisConnection.Configuration
    /// The number of seconds for which a read waits for entries. If no purges are published, it can take this long to
    /// notice that the server was emptied. Defaults to 5.
    package var blockSeconds = 5.0

    /// The maximum number of entries per read. With the largest payloads, they take a quarter of
    /// `RedisConnection.Configuration.maxReplyBytes`.
    private static let batch = 128
    /// The number of seconds before the next attempt if the server replies with an error.
    private static let pauseSeconds = 1.0

    package init(_ stream: PurgeStream, _ connection: RedisConnection.Configuration) {
        (self.stream, self.connection) = (stream, connection)
    }

    /// Passes events on in order until the task is cancelled.
    ///
    /// - Parameters:
    ///   - apply: applies the events of one read.
    ///   - advance: stores the position after all events so far. It is called after the events have been applied, so
    ///     that a crash in the meantime repeats purges instead of losing them.
    ///   - confirm: called with a time in seconds of `SystemClock.boot`, once all purges published until then have been
    ///     applied.
    /// - Throws: errors from `apply` and `advance`. Errors of the connection itself are events.
    package func run(
        from start: PurgeStart, apply: @Sendable ([PurgeEvent]) async throws -> Void,
        advance: @Sendable (PurgePosition) async throws -> Void,
        confirm: @Sendable (_ since: Double, PurgePosition) async -> Void = { _, _ in }
    ) async throws {
        let redis = RedisConnection(connection)
        defer { redis.close() }
        var progress = PurgeProgress(start)
        var stored = progress.position
        var (isConnected, isLate) = (false, false)
        var reported: RedisError.Code?
        while !Task.isCancelled {
            let began = SystemClock.boot.seconds
            // Do not wait if an epoch is needed, so that the new epoch is stored with the position at once.
            let waits = isConnected && !isLate && !progress.needsEpoch
            switch await Result(of: { () async throws(RedisError) in try await step(redis, progress, waits) }) {
            case .success((let events, let next)):
                let all = isConnected ? events : [.connected] + events
                (isConnected, reported) = (true, nil)
                if !all.isEmpty { try await apply(all) }
                progress = next
                if let position = progress.position, position != stored { try await advance(position) }
                stored = progress.position ?? stored
                if let position = progress.position, events.count < Self.batch { await confirm(began, position) }
                // The process may have been stopped in the meantime, for example. Purges that were published since then
                // are read at once.
                isLate = SystemClock.boot.seconds - began > 2 * blockSeconds
            case .failure(let error):
                if error.code == .cancelled { return }
                if reported != error.code { try await apply([.disconnected(error)]) }
                (isConnected, reported) = (false, error.code)
                // The sleep ends early only on cancellation, and the loop checks for cancellation.
                try? await Task.sleep(for: .seconds(error.retrySeconds ?? Self.pauseSeconds))
            }
        }
    }

    /// Reads the next entries, and returns the position that they lead to.
    private func step(
        _ redis: RedisConnection, _ progress: PurgeProgress, _ waits: Bool
    ) async throws(RedisError) -> ([PurgeEvent], PurgeProgress) {
        let (name, counter, epoch) = (RedisWord(stream.name), RedisWord(stream.counter), RedisWord(stream.epoch))
        var next = progress
        guard let position = progress.position else {
            let reply = try await redis.send([stream.beginning(replacing: progress.outdated)])[0]
            guard let results = reply.elements, results.count == 3, let epoch = results[0].text else {
                throw redis.unexpected(reply)
            }
            let last = try entries(results[2], redis).first
            return (next.begin(counter: try number(results[1], redis), last: last?.id, epoch: epoch), next)
        }
        let id = RedisWord(position.streamID.description)
        // The first read does not block, so that a failing server is noticed at once.
        let block = waits ? ["BLOCK", RedisWord(max(Int(blockSeconds * 1000), 1))] : []
        let first = progress.needsEpoch ? [stream.beginning(replacing: progress.outdated)] : []
        let sent = try await redis.send(
            first + [
                ["GET", epoch], ["GET", counter], ["XRANGE", name, id, id],
                ["XREAD", "COUNT", RedisWord(Self.batch)] + block + ["STREAMS", name, id],
            ],
            timeoutSeconds: connection.timeoutSeconds + (waits ? blockSeconds : 0))
        let replies = Array(sent.dropFirst(first.count))
        guard replies[0] == .null || replies[0].text != nil else { throw redis.unexpected(replies[0]) }
        if !first.isEmpty {
            guard let epoch = replies[0].text, sent[0].elements != nil else { throw redis.unexpected(sent[0]) }
            next.adopt(epoch)
        }
        let hasPosition = try !entries(replies[2], redis).isEmpty
        var found: [PurgeEntry] = []
        if replies[3] != .null {
            // The reply is one pair of a stream's name and its entries.
            guard let pair = replies[3].elements?.first?.elements, pair.count == 2 else {
                throw redis.unexpected(replies[3])
            }
            found = try entries(pair[1], redis)
        }
        let events = next.take(
            counter: try number(replies[1], redis), hasPosition: hasPosition, entries: found, epoch: replies[0].text)
        return (events, next)
    }

    private func number(_ reply: RedisReply, _ redis: RedisConnection) throws(RedisError) -> Int {
        if reply == .null { return 0 }
        guard let number = reply.text.flatMap(PurgePosition.number) else { throw redis.unexpected(reply) }
        return number
    }

    private func entries(_ reply: RedisReply, _ redis: RedisConnection) throws(RedisError) -> [PurgeEntry] {
        guard let elements = reply.elements else { throw redis.unexpected(reply) }
        var entries: [PurgeEntry] = []
        for element in elements {
            guard let entry = PurgeEntry(element) else { throw redis.unexpected(element) }
            entries.append(entry)
        }
        return entries
    }
}
