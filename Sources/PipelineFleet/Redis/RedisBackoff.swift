/// The delay before a failed connection is retried. It grows exponentially and has jitter, so that the nodes of a fleet
/// do not reconnect at the same time.
struct RedisBackoff {
    private var failures = 0
    private(set) var retryAt = 0.0

    /// Records a failure. Returns the number of seconds until the next attempt, which is a random time between half of
    /// the doubled delay and the doubled delay.
    mutating func fail(
        _ configuration: RedisConnection.Configuration, now: Double, jitter: Double = .random(in: 0...1)
    ) -> Double {
        let doubled = configuration.firstBackoffSeconds * Double(1 << min(failures, 20))
        let seconds = min(doubled, configuration.maxBackoffSeconds) * (1 + jitter) / 2
        failures += 1
        retryAt = now + seconds
        return seconds
    }
}
