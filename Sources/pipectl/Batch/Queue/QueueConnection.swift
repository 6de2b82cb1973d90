import Pipeline
import PipelineFleet

/// The connection to the Redis server that holds the queue of batches.
enum QueueConnection {
    /// Returns the configuration of the server that `--queue` names or, if the option is absent, the `queue` or
    /// `fleet.redis` setting. If the URL has no password, the password of a setting with the same server is used,
    /// because every user of a machine can read a command line.
    ///
    /// - Parameter given: The value of `--queue`, which is nil or empty if the option was not given.
    /// - Throws: A usage error that does not contain any part of the URL.
    static func configuration(
        _ given: String?, _ settings: RunConfiguration, isQuiet: Bool
    ) throws(CommandFailure) -> RedisConnection.Configuration {
        let known = [settings.queue, settings.fleet?.redis].compactMap(\.self)
        let named = try url(given ?? "")
        guard var url = named ?? known.first else {
            throw CommandFailure(
                .usage,
                "no Redis server is configured; use --queue redis://HOST, or set `queue` (PIPECTL_QUEUE) or `fleet.redis`"
            )
        }
        if named?.password != nil, !isQuiet {
            Console.error(
                "pipectl: other users of this machine can see the password in --queue; set PIPECTL_QUEUE instead",
                .warning)
        }
        for other in known { url.takeCredentials(of: other) }
        var configuration = RedisConnection.Configuration(url)
        configuration.authoritiesFile = settings.pipeline.fetch.authoritiesFile
        return configuration
    }

    private static func url(_ text: String) throws(CommandFailure) -> RedisURL? {
        if text.isEmpty { return nil }
        do throws(RedisURL.Problem) { return try RedisURL(text) } catch {
            throw CommandFailure(.usage, "--queue: \(error)")
        }
    }

    static func batch(_ text: String, of option: String) throws(CommandFailure) -> BatchID {
        guard let id = BatchID(text) else {
            throw CommandFailure(
                .usage, "\(option): `\(text)` is not a batch ID, which consists of 16 hexadecimal digits")
        }
        return id
    }

    /// Repeats a call while the server is unavailable, and logs once that it is unavailable. Throws if the server
    /// refuses the password.
    ///
    /// - Returns: nil if an interruption was requested in the meantime.
    static func untilItAnswers<Value: Sendable>(
        _ call: () async throws(BatchError) -> Value
    ) async throws(CommandFailure) -> Value? {
        var hasTold = false
        while true {
            do throws(BatchError) { return try await call() } catch {
                // Retrying helps if the server is unavailable, but not if the password is wrong.
                guard case .redis(let cause) = error, let seconds = cause.retrySeconds,
                    cause.code != .credentialsRefused
                else { throw failure(error) }
                if Interruption.isRequested { return nil }
                if !hasTold {
                    Console.error("pipectl: the queue is not responding (\(cause)); retrying", .warning)
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
