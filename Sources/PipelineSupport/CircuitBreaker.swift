/// When requests to an origin that keeps failing are rejected (setting `fetch.breaker`).
public struct BreakerConfiguration: Sendable, Hashable {
    /// Consecutive failures that open the breaker: failed connections, time-outs and 5xx. Default 20, which a page of
    /// broken images does not reach and an outage reaches at once.
    public var failures = 20
    /// Seconds for which the breaker stays open before one trial request; doubled each time the trial fails, up to
    /// eight times this. Default 10.
    public var seconds = 10.0

    /// The defaults.
    public init() {}
}

/// Rejects requests to origins that keep failing: closed, open after consecutive failures, half open with one trial.
///
/// A value type that takes the time as a parameter; its owner locks it.
package struct CircuitBreaker: Sendable {
    package enum Admission: Sendable, Hashable {
        /// Send the request. A trial decides for all other requests, so its outcome must be recorded.
        case ask(isTrial: Bool)
        /// Reject the request; the failures so far, and the seconds until a trial (0 while one is in progress).
        case refuse(failures: Int, seconds: Double)
    }

    package enum Outcome: Sendable {
        /// The origin answered, even if with a 404.
        case answered
        /// The origin was not reached, did not answer in time, broke off, or answered 5xx.
        case failed
        /// The request ended for reasons unrelated to the origin.
        case unknown
    }

    private struct State {
        var failures = 0
        var opensUntil: Double?
        var openings = 0
        var hasTrial = false
    }

    private let configuration: BreakerConfiguration
    private var states: [String: State] = [:]

    /// The most origins remembered: names come from requests, and memory must not grow with them.
    package static let mostOrigins = 4096

    package init(_ configuration: BreakerConfiguration) { self.configuration = configuration }

    /// Whether to send a request to an origin at `now`, in seconds of any monotonic clock.
    package mutating func admit(_ origin: String, now: Double) -> Admission {
        guard let state = states[origin], let until = state.opensUntil else { return .ask(isTrial: false) }
        guard now >= until, !state.hasTrial else {
            return .refuse(failures: state.failures, seconds: max(0, until - now))
        }
        states[origin]?.hasTrial = true
        return .ask(isTrial: true)
    }

    /// Records how an admitted request ended.
    package mutating func record(_ origin: String, _ outcome: Outcome, isTrial: Bool, now: Double) {
        switch outcome {
        case .answered:
            states[origin] = nil
        case .unknown:
            if isTrial { states[origin]?.hasTrial = false }
        case .failed:
            var state = states[origin] ?? State()
            state.failures += 1
            // Failures of requests that were in flight when the breaker opened do not prolong it.
            if isTrial || (state.opensUntil == nil && state.failures >= max(configuration.failures, 1)) {
                state.opensUntil = now + configuration.seconds * Double(1 << min(state.openings, 3))
                state.openings += 1
                state.hasTrial = false
            }
            states[origin] = state
            if states.count > Self.mostOrigins { forget(now: now) }
        }
    }

    /// Makes room: forgets origins whose breaker is not open first, then all.
    private mutating func forget(now: Double) {
        states = states.filter { ($0.value.opensUntil ?? 0) > now || $0.value.hasTrial }
        if states.count > Self.mostOrigins { states = [:] }
    }
}
