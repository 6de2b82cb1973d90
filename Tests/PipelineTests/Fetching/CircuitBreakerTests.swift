@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

private func breaker(failures: Int = 3, seconds: Double = 10) -> CircuitBreaker {
    var configuration = BreakerConfiguration()
    configuration.failures = failures
    configuration.pause = .seconds(seconds)
    return CircuitBreaker(configuration)
}

struct CircuitBreakerTests {
    @Test func `failures in a row open it, an answer in between does not let it come to that`() {
        var breaker = breaker()
        for outcome in [CircuitBreaker.Outcome.failed, .failed, .answered, .failed, .failed] {
            #expect(breaker.admit("a", now: 0) == .ask(isTrial: false))
            breaker.record("a", outcome, isTrial: false, now: 0)
        }
        #expect(breaker.admit("a", now: 0) == .ask(isTrial: false))
        breaker.record("a", .failed, isTrial: false, now: 1)
        #expect(breaker.admit("a", now: 4) == .refuse(failures: 3, seconds: 7))
        #expect(breaker.admit("b", now: 4) == .ask(isTrial: false))
    }

    @Test func `after its time one trial decides for all`() {
        var breaker = breaker()
        for _ in 0..<3 { breaker.record("a", .failed, isTrial: false, now: 0) }
        #expect(breaker.admit("a", now: 10) == .ask(isTrial: true))
        #expect(breaker.admit("a", now: 10) == .refuse(failures: 3, seconds: 0))
        breaker.record("a", .answered, isTrial: true, now: 11)
        #expect(breaker.admit("a", now: 11) == .ask(isTrial: false))
        #expect(breaker.admit("a", now: 11) == .ask(isTrial: false))
    }

    @Test func `each failed trial doubles the time, up to eight times`() {
        var breaker = breaker()
        for _ in 0..<3 { breaker.record("a", .failed, isTrial: false, now: 0) }
        var now = 0.0
        for seconds in [10.0, 20, 40, 80, 80] {
            #expect(breaker.admit("a", now: now + seconds - 1) != .ask(isTrial: true))
            now += seconds
            #expect(breaker.admit("a", now: now) == .ask(isTrial: true))
            breaker.record("a", .failed, isTrial: true, now: now)
        }
    }

    @Test func `a trial that says nothing gives way to another`() {
        var breaker = breaker()
        for _ in 0..<3 { breaker.record("a", .failed, isTrial: false, now: 0) }
        #expect(breaker.admit("a", now: 10) == .ask(isTrial: true))
        breaker.record("a", .unknown, isTrial: true, now: 10)
        #expect(breaker.admit("a", now: 10) == .ask(isTrial: true))
    }

    @Test func `failures of requests that were under way do not lengthen it`() {
        var breaker = breaker()
        for now in 0..<9 { breaker.record("a", .failed, isTrial: false, now: Double(now)) }
        #expect(breaker.admit("a", now: 12) == .ask(isTrial: true))
    }

    @Test func `memory does not grow with the number of origins`() {
        var breaker = breaker(failures: 2)
        for _ in 0..<2 { breaker.record("down", .failed, isTrial: false, now: 0) }
        for number in 0..<20_000 { breaker.record("origin \(number)", .failed, isTrial: false, now: 1) }
        #expect(breaker.admit("down", now: 1) == .refuse(failures: 2, seconds: 9))
        #expect(
            Mirror(reflecting: breaker).descendant("states").map { Mirror(reflecting: $0).children.count } ?? 0 <= 4096)
    }

    @Test func `an origin that fails is left alone, then tried, then asked again`() async throws {
        let time = Mutex(0.0)
        let isDown = Mutex(true)
        let origin = try LoopbackOrigin { _ in .response(isDown.withLock { $0 } ? 500 : 200) }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        configuration.breaker?.failures = 2
        var hooks = TransportHooks()
        hooks.now = { time.withLock { $0 } }
        let transport = CurlTransport(configuration, hooks: hooks)
        defer { transport.shutdown() }
        let request = FetchRequest(url: try SourceURL(origin.url("/")))
        for _ in 0..<2 {
            let status = try await transport.fetch(request).status
            #expect(status == 500)
        }
        let error = try await failure(transport, origin.url("/"))
        #expect(error.code == .circuitOpen)
        #expect(
            error.message.contains("2 times") && error.message.contains("10 s")
                && error.message.contains("fetch.breaker"))
        #expect(PipelineError(error).code == .fetchFailed)
        #expect(origin.requests.count == 2)
        isDown.withLock { $0 = false }
        time.withLock { $0 = 10 }
        for _ in 0..<3 {
            let status = try await transport.fetch(request).status
            #expect(status == 200)
        }
    }

    @Test func `refused connections open it, refused addresses and switching it off do not`() async throws {
        let port = try RefusingPort()
        defer { withExtendedLifetime(port) {} }
        let url = port.url("/")
        for (isOn, allow, last) in [
            (true, AddressRule.all, FetchError.Code.circuitOpen), (false, .all, .unreachable),
            (true, .publicOnly, .refusedAddress),
        ] {
            var configuration = FetchConfiguration()
            configuration.allowPrivateAddresses = allow
            configuration.breaker?.failures = 2
            if !isOn { configuration.breaker = nil }
            let transport = CurlTransport(configuration)
            defer { transport.shutdown() }
            var codes: [FetchError.Code] = []
            for _ in 0..<3 { codes.append(try await failure(transport, url).code) }
            #expect(codes.last == last, "\(codes)")
        }
    }
}

extension RateLimiter {
    /// Makes a request, unless it has to wait; returns the seconds it has to.
    fileprivate mutating func request(_ origin: String, now: Double) -> Double {
        let seconds = wait(origin, now: now)
        if seconds == 0 { take(origin, now: now) }
        return seconds
    }
}

struct RateLimiterTests {
    @Test func `a second's worth at once, then evenly`() {
        var limiter = RateLimiter(rate: 4)
        for _ in 0..<4 { #expect(limiter.request("a", now: 0) == 0) }
        #expect(limiter.request("a", now: 0) == 0.25)
        #expect(abs(limiter.request("a", now: 0.1) - 0.15) < 1e-9)
        #expect(limiter.request("b", now: 0.1) == 0)
        #expect(limiter.request("a", now: 0.25) == 0)
        #expect(limiter.request("a", now: 0.25) == 0.25)
        for _ in 0..<4 { #expect(limiter.request("a", now: 100) == 0) }
        #expect(limiter.request("a", now: 100) > 0)
    }

    @Test func `less than one a second still lets one through, none means no limit`() {
        var slow = RateLimiter(rate: 0.5)
        #expect(slow.request("a", now: 0) == 0)
        #expect(slow.request("a", now: 0) == 2)
        #expect(slow.request("a", now: 2) == 0)
        var none = RateLimiter(rate: 0)
        for _ in 0..<1000 { #expect(none.request("a", now: 0) == 0) }
    }

    @Test func `all requests over the rate are made in the end`() async throws {
        try await withOrigin {
            // Beyond the first second's worth each waits a few milliseconds.
            $0.maxRequestsPerSecond = 200
            $0.maxConcurrentTransfers = 400
            $0.maxConcurrentTransfersPerHost = 400
        } handler: { _ in
            .response(200)
        } _: { origin, transport in
            let request = FetchRequest(url: try SourceURL(origin.url("/")))
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<220 { group.addTask { try await transport.fetch(request).status } }
                for try await status in group { #expect(status == 200) }
            }
            #expect(origin.requests.count == 220)
        }
    }
}
