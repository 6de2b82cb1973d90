/// Configures when a pipeline stops calling an origin or a tier that keeps failing: `FetchConfiguration.breaker` and
/// `TierPlacement.breaker`.
///
/// ```swift
/// var breaker = BreakerConfiguration()
/// breaker.failures = 5
/// breaker.pause = .seconds(30)
/// var configuration = PipelineConfiguration()
/// configuration.fetch.breaker = breaker
/// ```
public struct BreakerConfiguration: Sendable, Hashable {
    /// The number of consecutive failures that open the breaker: failed connections, timeouts and 5xx responses.
    /// Defaults to 20, a number that an outage reaches immediately, but a page with broken images does not.
    public var failures = 20
    /// The time for which the breaker stays open before a trial request. It doubles each time the trial fails, up to
    /// eight times this value. Defaults to 10 s.
    public var pause = Duration.seconds(10)

    /// Creates a configuration with the defaults.
    public init() {}
}

/// Rejects requests to origins that keep failing. The breaker for an origin is closed, open after consecutive failures,
/// or half open with one trial request.
///
/// This is a value type that takes the time as a parameter. The owner must synchronize access.
package struct CircuitBreaker: Sendable {
    package enum Admission: Sendable, Hashable {
        /// Send the request. The outcome of a trial decides for all other requests, so it must be recorded.
        case ask(isTrial: Bool)
        /// Reject the request. The values are the number of failures so far and the number of seconds until the next
        /// trial, which is 0 while a trial is in progress.
        case refuse(failures: Int, seconds: Double)
    }

    package enum Outcome: Sendable {
        /// The origin responded, even with an error such as 404.
        case answered
        /// The origin could not be reached, timed out, closed the connection early, or responded with 5xx.
        case failed
        /// The request ended for a reason unrelated to the origin.
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

    /// The maximum number of origins to remember. It limits memory, because the names of origins come from requests.
    package static let maxOrigins = 4096

    package init(_ configuration: BreakerConfiguration) { self.configuration = configuration }

    /// Decides whether to send a request to an origin.
    ///
    /// - Parameter now: the time in seconds on any monotonic clock.
    package mutating func admit(_ origin: String, now: Double) -> Admission {
        guard let state = states[origin], let until = state.opensUntil else { return .ask(isTrial: false) }
        guard now >= until, !state.hasTrial else {
            return .refuse(failures: state.failures, seconds: max(0, until - now))
        }
        states[origin]?.hasTrial = true
        return .ask(isTrial: true)
    }

    /// Records how an allowed request ended.
    package mutating func record(_ origin: String, _ outcome: Outcome, isTrial: Bool, now: Double) {
        switch outcome {
        case .answered:
            states[origin] = nil
        case .unknown:
            if isTrial { states[origin]?.hasTrial = false }
        case .failed:
            var state = states[origin] ?? State()
            state.failures += 1
            // Requests that were in flight when the breaker opened may fail later. They do not extend the pause.
            if isTrial || (state.opensUntil == nil && state.failures >= max(configuration.failures, 1)) {
                state.opensUntil = now + configuration.pause / .seconds(1) * Double(1 << min(state.openings, 3))
                state.openings += 1
                state.hasTrial = false
            }
            states[origin] = state
            if states.count > Self.maxOrigins { forget(now: now) }
        }
    }

    /// Makes room by forgetting origins with a closed breaker, or all origins if that is not enough.
    private mutating func forget(now: Double) {
        states = states.filter { ($0.value.opensUntil ?? 0) > now || $0.value.hasTrial }
        if states.count > Self.maxOrigins { states = [:] }
    }
}
