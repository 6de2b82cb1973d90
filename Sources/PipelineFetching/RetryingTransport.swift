import HTTPCaching
import PipelineSupport
import Synchronization

/// Tries again what may succeed a moment later: failed connections, and 429, 502, 503, 504.
///
/// `FetchConfiguration.retries` further attempts; the last answer is returned as it is. A `Retry-After` within the
/// limit is waited for; a longer one ends the attempts. Redirects are not followed again. An interrupted body is resumed
/// if its response has a strong `ETag` and a length: the rest is requested with `Range` and `If-Range` (RFC 9110
/// §13.1.5, §14.2), and the whole body again if the rest does not match. Within `totalSeconds` only attempts that bring
/// nothing new count. A body that passed that limit while it arrived is resumed by the next request for it.
package final class RetryingTransport<Base: Transport>: Transport {
    private let base: Base
    private let configuration: FetchConfiguration
    private let parts = Mutex(InterruptedParts())
    private let pause: @Sendable (_ seconds: Double) async throws -> Void

    /// - Parameter pause: how to wait between attempts; by default a sleep, which cancellation ends.
    package init(
        _ base: Base, configuration: FetchConfiguration,
        pause: @escaping @Sendable (_ seconds: Double) async throws -> Void = { seconds in
            try await Task.sleep(for: .seconds(seconds))
        }
    ) {
        self.base = base
        self.configuration = configuration
        self.pause = pause
    }

    package func shutdown() async { await base.shutdown() }

    package func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        var attempt = 0
        var request = request
        // Other fields may select another representation; these do not.
        var key = request
        (key.traceFields, key.onInterim, key.signature) = ([], nil, nil)
        let began = SystemClock.monotonic.seconds
        if request.method == "GET", let part = parts.withLock({ $0.take(key, now: began) }) {
            (request.resuming, request.followed) = (part.response, part.followed)
        }
        // The most of the body that an attempt has left behind. A part that did not match counts, so that this ends.
        var most = request.resuming?.body.count ?? 0
        // A request that may change state is sent only once (RFC 9110 §9.2.2). Putting an object twice is putting it once.
        let retries = request.method == "GET" || request.isToStore ? configuration.retries : 0
        let progress = retries > 0 ? onProgress.map(Self.neverBackwards) : onProgress
        while true {
            let outcome: Result<FetchedResponse, FetchError>
            do throws(FetchError) {
                let response = try await base.fetch(request, onProgress: progress)
                request.followed = FollowedRedirects(
                    url: response.finalURL, urls: response.redirects, responses: response.redirectResponses)
                outcome = .success(response)
            } catch {
                // Kept across attempts that received nothing; dropped once the rest is known not to match.
                if error.code == .partMismatch { request.resuming = nil }
                request.followed = error.followed
                if let partial = error.partial {
                    request.resuming = partial
                    let now = SystemClock.monotonic.seconds
                    if partial.body.count - most >= configuration.leastProgress {
                        most = partial.body.count
                        if now - began < configuration.totalLimit { attempt = 0 }
                    }
                    if error.code == .timeout {
                        let until = now + InterruptedParts.seconds
                        parts.withLock { [followed = error.followed] in $0.keep((partial, followed, until), for: key) }
                    }
                }
                var error = error
                (error.partial, error.followed) = (nil, nil)
                outcome = .failure(error)
            }
            guard attempt < retries,
                let seconds = RetryDelay.seconds(
                    after: outcome, attempt: attempt, configuration: configuration,
                    jitter: Double.random(in: 0.5...1), canResume: request.resuming != nil, isToStore: request.isToStore
                )
            else { return try outcome.get() }
            attempt += 1
            do {
                try await pause(seconds)
            } catch {
                throw FetchError(.cancelled, request.url, "cancelled")
            }
        }
    }

    /// Suppresses progress that an earlier attempt has already reported.
    private static func neverBackwards(
        _ report: @escaping @Sendable (_ received: Int, _ expected: Int?) -> Void
    ) -> @Sendable (_ received: Int, _ expected: Int?) -> Void {
        let most = ProgressMark()
        return { received, expected in if most.advances(to: received) { report(received, expected) } }
    }
}

/// The highest count so far.
private final class ProgressMark: Sendable {
    private let most = Atomic(-1)

    func advances(to count: Int) -> Bool { most.max(count, ordering: .relaxed).oldValue < count }
}

/// Whether and when to try again.
enum RetryDelay {
    private static let statuses: Set<Int> = [429, 502, 503, 504]
    private static let codes: Set<FetchError.Code> = [
        .unresolvable, .unreachable, .connectTimeout, .transport, .truncated, .partMismatch,
    ]

    /// Seconds to wait before the next attempt; nil if there should be none.
    ///
    /// - Parameters:
    ///   - attempt: retries made so far; each doubles the delay.
    ///   - canResume: whether the next attempt would request only the rest of the body, so that a stall is retried.
    ///   - isToStore: whether a store answers, whose 500 says no more than that something failed inside.
    ///   - jitter: 0.5…1, multiplies the delay so that many callers do not return at once.
    static func seconds(
        after outcome: Result<FetchedResponse, FetchError>, attempt: Int, configuration: FetchConfiguration,
        jitter: Double, canResume: Bool = false, isToStore: Bool = false
    ) -> Double? {
        let backoff = configuration.retrySeconds * Double(1 << min(attempt, 16)) * jitter
        switch outcome {
        case .failure(let error):
            return codes.contains(error.code) || (error.code == .stalled && (canResume || isToStore)) ? backoff : nil
        case .success(let response):
            guard statuses.contains(response.status) || (isToStore && response.status == 500) else { return nil }
            guard let text = response.fields.first("retry-after") else { return backoff }
            let asked: Double
            if let seconds = FieldLines.deltaSeconds(text) {
                asked = Double(seconds)
            } else if let date = HTTPDate.unixSeconds(text, now: response.responseTime) {
                asked = max(0, Double(date) - response.responseTime)
            } else {
                return backoff
            }
            return asked <= configuration.retryAfterLimitSeconds ? max(asked, backoff) : nil
        }
    }
}
