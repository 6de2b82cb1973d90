/// When a failed connection is tried again: exponential, with jitter so that a fleet does not return all at once.
struct RedisBackoff {
    private var failures = 0
    private(set) var retryAt = 0.0

    /// Counts a failure; returns the seconds until the next attempt, between half and all of the doubled time.
    mutating func fail(
        _ configuration: RedisConnection.Configuration, now: Double, jitter: Double = .random(in: 0...1)
    ) -> Double {
        let doubled = configuration.firstBackoffSeconds * Double(1 << min(failures, 20))
        let seconds = min(doubled, configuration.mostBackoffSeconds) * (1 + jitter) / 2
        failures += 1
        retryAt = now + seconds
        return seconds
    }
}
