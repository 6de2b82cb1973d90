import PipelineFleet

/// A Redis server with a queue of batches, as a command line names it.
enum QueueConnection {
    /// - Throws: a usage error, which repeats nothing of the URL.
    static func configuration(
        _ url: String, authoritiesFile: String?
    ) throws(CommandFailure) -> RedisConnection.Configuration {
        do throws(RedisURL.Problem) {
            var configuration = RedisConnection.Configuration(try RedisURL(url))
            configuration.authoritiesFile = authoritiesFile
            return configuration
        } catch {
            throw CommandFailure(.usage, "--queue: \(error)")
        }
    }

    static func batch(_ text: String, of option: String) throws(CommandFailure) -> BatchID {
        guard let id = BatchID(text) else {
            throw CommandFailure(
                .usage, "\(option): `\(text)` is not the ID of a batch, which has 16 hexadecimal digits")
        }
        return id
    }

    /// Repeats a call for as long as the server is away, which it tells once.
    ///
    /// - Returns: nil if an interruption was requested meanwhile.
    static func untilItAnswers<Value: Sendable>(
        _ call: () async throws(BatchError) -> Value
    ) async throws(CommandFailure) -> Value? {
        var hasTold = false
        while true {
            do throws(BatchError) { return try await call() } catch {
                guard case .redis(let cause) = error, let seconds = cause.retrySeconds else { throw failure(error) }
                if Interruption.isRequested { return nil }
                if !hasTold {
                    Console.error("pipectl: the queue does not answer, and is asked again: \(cause)", .warning)
                }
                hasTold = true
                try? await Task.sleep(for: .seconds(min(max(seconds, 0.05), 1)))
            }
        }
    }

    static func failure(_ error: BatchError) -> CommandFailure {
        switch error {
        case .gone, .unknownFormat, .tooLarge, .outOfStep, .finished: CommandFailure(.usage, "\(error)")
        case .redis, .serverTooOld: CommandFailure(.fetchFailed, "\(error)")
        }
    }
}
