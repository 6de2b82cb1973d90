import Testing

@testable import Variants

@Suite struct StartBackoffTests {
    @Test func `each failure in a row doubles the pause, up to half a minute, and a start that works ends it`() {
        var backoff = StartBackoff()
        var pauses: [Double] = []
        for _ in 0..<12 {
            #expect(backoff.delay(now: 1000 + 100) == 0)
            backoff = {
                var next = backoff; next.failed(RenderError(.workerUnavailable, "why"), now: 1000); return next
            }()
            pauses.append(backoff.delay(now: 1000))
        }
        let expected = [0.1, 0.2, 0.4, 0.8]
        #expect(zip(pauses, expected).allSatisfy { abs($0 - $1) < 1e-9 })
        #expect(pauses.last == 30 && backoff.reason?.message == "why")
        backoff.succeeded()
        #expect(backoff.delay(now: 1000) == 0 && backoff.reason == nil)
    }
}
