import Testing

@testable import PipelineFleet

@Suite struct RedisBackoffTests {
    @Test func `waits double from failure to failure, with jitter`() throws {
        var configuration = RedisConnection.Configuration(try RedisURL("redis://host"))
        configuration.firstBackoffSeconds = 1
        configuration.maxBackoffSeconds = 6
        for (jitter, share) in [(0.0, 0.5), (1, 1)] {
            var backoff = RedisBackoff()
            let waits = (0..<5).map { _ in backoff.fail(configuration, now: 100, jitter: jitter) }
            #expect(waits == [1, 2, 4, 6, 6].map { $0 * share })
            #expect(backoff.retryAt == 100 + 6 * share)
        }
    }
}
