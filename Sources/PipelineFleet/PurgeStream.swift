/// The fleet's purges, as a Redis stream that every node adds to and follows.
///
/// Beside the stream a counter, `STREAM:number`, numbers its entries without gaps: a reader that misses a number knows that
/// a purge was lost. Both keys are used by one script, so a Redis cluster is not supported.
package struct PurgeStream: Sendable {
    /// The name of the stream. Default `image-pipeline:purges`.
    package var name = "image-pipeline:purges"
    /// About how many entries the server keeps (`MAXLEN ~`), each until nodes that were away have read it. Default 100,000.
    package var limit = 100_000

    /// Bytes of the largest purge: 64 KiB, so that a batch of them stays within a connection's limit.
    package static let maxPayloadBytes = 64 << 10

    package init() {}

    var counter: String { name + ":number" }

    /// Takes the next number and adds an entry in one step; returns the number.
    ///
    /// A script, not MULTI/EXEC: within a transaction the number that INCR returns could not be used by XADD. If XADD fails,
    /// the script takes the number back, which no other client has seen.
    private static let script = """
        local number = redis.call('INCR', KEYS[2])
        local added = redis.pcall('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', \
        'number', number, 'payload', ARGV[2], 'node', ARGV[3])
        if type(added) == 'table' and added.err then
            redis.call('DECR', KEYS[2])
            return added
        end
        return number
        """

    /// Publishes a purge and returns its number.
    ///
    /// After an error it may have been published nevertheless; to publish it again is harmless.
    package func publish(
        _ payload: [UInt8], from node: String, on connection: RedisConnection
    ) async throws(RedisError) -> Int {
        guard payload.count <= Self.maxPayloadBytes else {
            throw RedisError(
                .tooLarge, connection.url,
                "a purge of \(payload.count) bytes is not published, the limit is \(Self.maxPayloadBytes): split it")
        }
        let replies = try await connection.send([
            [
                "EVAL", RedisWord(Self.script), "2", RedisWord(name), RedisWord(counter), RedisWord(limit),
                RedisWord(payload), RedisWord(node),
            ]
        ])
        guard case .integer(let number) = replies[0] else { throw connection.unexpected(replies[0]) }
        return number
    }
}
