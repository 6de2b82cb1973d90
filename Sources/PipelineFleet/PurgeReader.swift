import PipelineSupport

/// Follows the fleet's purges on a connection of its own.
package struct PurgeReader: Sendable {
    package var stream: PurgeStream
    package var connection: RedisConnection.Configuration
    /// Seconds for which one read waits for entries. An emptied server is noticed that late if nothing is published.
    /// Default 5.
    package var blockSeconds = 5.0

    /// Entries of one read; with the largest payloads a quarter of `RedisConnection.Configuration.maxReplyBytes`.
    private static let batch = 128
    /// Before the next attempt if the server answers, but with an error.
    private static let pauseSeconds = 1.0

    package init(_ stream: PurgeStream, _ connection: RedisConnection.Configuration) {
        (self.stream, self.connection) = (stream, connection)
    }

    /// Hands out events in order until the task is cancelled.
    ///
    /// - Parameters:
    ///   - apply: applies the events of one read.
    ///   - advance: stores the place that all events so far have led to. Called after they were applied, so that a crash in
    ///     between repeats purges and loses none.
    ///   - confirm: told that all has been applied that was published until then, in seconds of `SystemClock.boot`.
    /// - Throws: what `apply` and `advance` throw. The connection's own errors are events.
    package func run(
        from start: PurgeStart, apply: @Sendable ([PurgeEvent]) async throws -> Void,
        advance: @Sendable (PurgePlace) async throws -> Void,
        confirm: @Sendable (_ since: Double, PurgePlace) async -> Void = { _, _ in }
    ) async throws {
        let redis = RedisConnection(connection)
        defer { redis.close() }
        var progress = PurgeProgress(start)
        var stored = progress.place
        var (isConnected, isLate) = (false, false)
        var reported: RedisError.Code?
        while !Task.isCancelled {
            let began = SystemClock.boot.seconds
            let waits = isConnected && !isLate
            switch await Result(of: { () async throws(RedisError) in try await step(redis, progress, waits) }) {
            case .success((let events, let next)):
                let all = isConnected ? events : [.connected] + events
                (isConnected, reported) = (true, nil)
                if !all.isEmpty { try await apply(all) }
                progress = next
                if let place = progress.place, place != stored { try await advance(place) }
                stored = progress.place ?? stored
                if let place = progress.place, events.count < Self.batch { await confirm(began, place) }
                // The process was stopped, say: what was published meanwhile is asked for at once.
                isLate = SystemClock.boot.seconds - began > 2 * blockSeconds
            case .failure(let error):
                if error.code == .cancelled { return }
                if reported != error.code { try await apply([.disconnected(error)]) }
                (isConnected, reported) = (false, error.code)
                // Only cancellation ends the sleep early, and the loop sees it too.
                try? await Task.sleep(for: .seconds(error.retrySeconds ?? Self.pauseSeconds))
            }
        }
    }

    /// Reads what comes next, and how far that leads.
    private func step(
        _ redis: RedisConnection, _ progress: PurgeProgress, _ waits: Bool
    ) async throws(RedisError) -> ([PurgeEvent], PurgeProgress) {
        let (name, counter) = (RedisWord(stream.name), RedisWord(stream.counter))
        var next = progress
        guard let place = progress.place else {
            // In one transaction, or a purge published between the two would seem lost.
            let replies = try await redis.send([
                ["MULTI"], ["GET", counter], ["XREVRANGE", name, "+", "-", "COUNT", "1"], ["EXEC"],
            ])
            guard let results = replies[3].elements, results.count == 2 else { throw redis.unexpected(replies[3]) }
            let last = try entries(results[1], redis).first
            return (next.begin(counter: try number(results[0], redis), last: last?.id), next)
        }
        let id = RedisWord(place.streamID.description)
        // The first read does not block, so that it is known at once whether the server answers.
        let block = waits ? ["BLOCK", RedisWord(max(Int(blockSeconds * 1000), 1))] : []
        let replies = try await redis.send(
            [
                ["GET", counter], ["XRANGE", name, id, id],
                ["XREAD", "COUNT", RedisWord(Self.batch)] + block + ["STREAMS", name, id],
            ],
            timeoutSeconds: connection.timeoutSeconds + (waits ? blockSeconds : 0))
        let hasPlace = try !entries(replies[1], redis).isEmpty
        var found: [PurgeEntry] = []
        if replies[2] != .null {
            // One pair of a stream's name and its entries.
            guard let pair = replies[2].elements?.first?.elements, pair.count == 2 else {
                throw redis.unexpected(replies[2])
            }
            found = try entries(pair[1], redis)
        }
        let events = next.take(counter: try number(replies[0], redis), hasPlace: hasPlace, entries: found)
        return (events, next)
    }

    private func number(_ reply: RedisReply, _ redis: RedisConnection) throws(RedisError) -> Int {
        if reply == .null { return 0 }
        guard let number = reply.text.flatMap(PurgePlace.number) else { throw redis.unexpected(reply) }
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
