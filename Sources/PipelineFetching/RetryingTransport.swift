import HTTPCaching
import PipelineSupport
import Synchronization

/// Retries requests whose failure may be temporary: failed connections and statuses 429, 502, 503 and 504.
///
/// At most `FetchConfiguration.maxRetries` further attempts are made, and the last response is returned unchanged. A
/// `Retry-After` within the limit is honored, and a longer one ends the attempts. Redirects are not followed again.
///
/// An interrupted body is resumed if its response has a strong `ETag` and a length. The rest is requested with `Range`
/// and `If-Range` (RFC 9110 §13.1.5, §14.2). If the rest does not match, the complete body is requested again. Until
/// `totalTimeout` has passed, an attempt that makes progress does not count as a retry. A body that was still arriving
/// when that time ended is resumed by the next identical request.
package final class RetryingTransport<Base: Transport>: Transport {
    private let base: Base
    private let configuration: FetchConfiguration
    private let parts = Mutex(InterruptedParts())
    private let pause: @Sendable (_ seconds: Double) async throws -> Void

    /// - Parameter pause: a closure that waits between attempts. By default, it sleeps until the time has passed or the
    ///   task is cancelled.
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
        // These values do not select a different representation, but other header fields may.
        var key = request
        (key.traceFields, key.onInterim, key.signature) = ([], nil, nil)
        let began = SystemClock.monotonic.seconds
        if request.method == "GET", let part = parts.withLock({ $0.take(key, now: began) }) {
            (request.resuming, request.followed) = (part.response, part.followed)
        }
        // The largest body that an attempt has received. A part that did not match also counts, so that the loop ends.
        var most = request.resuming?.body.count ?? 0
        // A request that may change state is sent only once (RFC 9110 §9.2.2). Putting an object is idempotent.
        let retries = request.method == "GET" || request.isToStore ? configuration.maxRetries : 0
        let progress = retries > 0 ? onProgress.map(Self.neverBackwards) : onProgress
        while true {
            let outcome: Result<FetchedResponse, FetchError>
            do throws(FetchError) {
                let response = try await base.fetch(request, onProgress: progress)
                request.followed = FollowedRedirects(
                    url: response.finalURL, urls: response.redirects, responses: response.redirectResponses)
                outcome = .success(response)
            } catch {
                // The part is kept across attempts that received nothing, and dropped once the rest is known not to
                // match.
                if error.code == .partMismatch { request.resuming = nil }
                request.followed = error.followed
                if let partial = error.partial {
                    request.resuming = partial
                    let now = SystemClock.monotonic.seconds
                    if partial.body.count - most >= configuration.minProgress {
                        most = partial.body.count
                        if now - began < configuration.totalSeconds { attempt = 0 }
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

    /// Returns an observer without reports of progress that an earlier attempt has already reported.
    private static func neverBackwards(
        _ report: @escaping @Sendable (_ received: Int, _ expected: Int?) -> Void
    ) -> @Sendable (_ received: Int, _ expected: Int?) -> Void {
        let most = ProgressMark()
        return { received, expected in if most.advances(to: received) { report(received, expected) } }
    }
}

/// The highest byte count so far.
private final class ProgressMark: Sendable {
    private let most = Atomic(-1)

    func advances(to count: Int) -> Bool { most.max(count, ordering: .relaxed).oldValue < count }
}

/// Decides whether and when to retry.
enum RetryDelay {
    private static let statuses: Set<Int> = [429, 502, 503, 504]
    private static let codes: Set<FetchError.Code> = [
        .unresolvable, .unreachable, .connectTimeout, .transport, .truncated, .partMismatch,
    ]

    /// Returns the seconds to wait before the next attempt, or nil if there should be no further attempt.
    ///
    /// - Parameters:
    ///   - attempt: the number of retries so far. Each doubles the delay.
    ///   - canResume: whether the next attempt would request only the rest of the body. If so, a stall is retried.
    ///   - isToStore: whether the server is an object store. A 500 from an object store is retried, because it means
    ///     only that the store failed internally.
    ///   - jitter: a factor for the delay, 0.5…1, so that many callers do not retry at the same time.
    static func seconds(
        after outcome: Result<FetchedResponse, FetchError>, attempt: Int, configuration: FetchConfiguration,
        jitter: Double, canResume: Bool = false, isToStore: Bool = false
    ) -> Double? {
        let backoff = configuration.retryDelay.inSeconds * Double(1 << min(attempt, 16)) * jitter
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
            return asked <= configuration.maxRetryAfter.inSeconds ? max(asked, backoff) : nil
        }
    }
}
