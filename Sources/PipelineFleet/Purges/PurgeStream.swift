/// The fleet's purges, in a Redis stream that every node writes and follows.
///
/// In addition to the stream, the counter `STREAM:number` numbers the entries without gaps. If a number is missing, a
/// reader knows that a purge was lost. A third key, `STREAM:epoch`, is a random string that is set when the stream is
/// created. A node that notices a loss replaces the epoch, so that nodes that did not notice the loss learn of it too.
/// Redis Cluster is not supported, because one script uses all keys.
package struct PurgeStream: Sendable {
    /// The name of the stream. Defaults to `image-pipeline:purges`.
    package var name = "image-pipeline:purges"
    /// The approximate number of entries that the server keeps (`MAXLEN ~`), so that nodes that were away can read
    /// them. Defaults to 100,000.
    package var limit = 100_000

    /// The maximum size of a purge in bytes. It is 64 KiB, so that a batch of purges stays within a connection's limit.
    package static let maxPayloadBytes = 64 << 10

    package init() {}

    var counter: String { name + ":number" }
    var epoch: String { name + ":epoch" }

    /// Returns the command that reads the epoch, the number and the last entry in one step, because otherwise a purge
    /// that is published in the meantime would appear to be lost. If the stream has no epoch, the command creates one.
    ///
    /// - Parameter outdated: the epoch to replace, or nil to keep the current epoch.
    func beginning(replacing outdated: String?) -> [RedisWord] {
        let script = """
            local epoch = redis.call('GET', KEYS[3])
            if not epoch or epoch == ARGV[2] then
                epoch = ARGV[1]
                redis.call('SET', KEYS[3], epoch)
            end
            return {epoch, redis.call('GET', KEYS[2]), redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)}
            """
        let new = String(UInt64.random(in: .min ... .max), radix: 16)
        let keys = [name, counter, epoch].map { RedisWord($0) }
        return ["EVAL", RedisWord(script), "3"] + keys + [RedisWord(new), RedisWord(outdated ?? "")]
    }

    /// Increments the number and adds an entry in one step. Returns the number.
    ///
    /// This is a script instead of a transaction (MULTI/EXEC), because XADD in a transaction cannot use the number that
    /// INCR returned. If XADD fails, the script decrements the number again, before any other client has seen it.
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
    /// After an error, the purge may have been published nevertheless. Publishing it again is harmless.
    package func publish(
        _ payload: [UInt8], from node: String, on connection: RedisConnection
    ) async throws(RedisError) -> Int {
        guard payload.count <= Self.maxPayloadBytes else {
            throw RedisError(
                .tooLarge, connection.url,
                "a purge of \(payload.count) bytes cannot be published; the maximum is \(Self.maxPayloadBytes); split the purge"
            )
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
