import HTTPCaching
import Synchronization

/// Remembers for a while what failed several times in a row, so that a broken origin is not contacted for every request
/// (`errorMaxAge`, `errorAttempts`). In memory only, and bounded.
struct FailureMemory: Sendable {
    /// A failure, and the error that answers requests in the meantime.
    struct Failure: Sendable {
        var error: PipelineError
        var cause: OriginFailure
        var count: Int
        /// Unix seconds.
        var last: Double
    }

    /// Seconds; nil remembers nothing.
    let maxAge: Double?
    let attempts: Int
    /// The most entries kept; beyond it the oldest is dropped.
    var capacity = 4096
    private var failures: [String: Failure] = [:]

    init(maxAge: Double?, attempts: Int) {
        self.maxAge = maxAge
        self.attempts = attempts
    }

    /// The failure that answers for `key` at `now`; nil if the origin is to be asked, or the clock was set back.
    func remembered(_ key: String, now: Double) -> Failure? {
        guard let maxAge, let failure = failures[key], failure.count >= attempts, now >= failure.last,
            now - failure.last < maxAge
        else { return nil }
        return failure
    }

    /// Adds a failure. Returns whether there have been enough in a row to be remembered.
    mutating func note(_ key: String, _ error: PipelineError, _ cause: OriginFailure, now: Double) -> Bool {
        guard let maxAge else { return false }
        // An old failure does not count as consecutive with this one.
        let before = failures[key].map { now - $0.last < max(maxAge, 60) ? $0.count : 0 } ?? 0
        failures[key] = Failure(error: error, cause: cause, count: before + 1, last: now)
        if failures.count > capacity, let oldest = failures.min(by: { $0.value.last < $1.value.last }) {
            failures[oldest.key] = nil
        }
        return before + 1 >= attempts
    }

    mutating func clear(_ key: String) { failures[key] = nil }

    /// Forgets failures of the key, and of keys that extend it with further lines.
    mutating func clear(beginning key: String) {
        for other in failures.keys where other == key || other.hasPrefix(key + "\n") { failures[other] = nil }
    }

    /// Whether no failure is remembered.
    var isEmpty: Bool { failures.isEmpty }
}

/// The failure memory shared by all requests.
final class SharedFailureMemory: Sendable {
    private let state: Mutex<FailureMemory>

    init(_ configuration: CachingConfiguration) {
        state = Mutex(
            FailureMemory(
                maxAge: configuration.errorMaxAge.map { Double($0) }, attempts: max(1, configuration.errorAttempts)))
    }

    func remembered(_ keys: @autoclosure () -> [String], now: Double) -> FailureMemory.Failure? {
        state.withLock { state in
            for key in state.isEmpty ? [] : keys() {
                if let failure = state.remembered(key, now: now) { return failure }
            }
            return nil
        }
    }

    func note(_ key: String, _ error: PipelineError, _ cause: OriginFailure, now: Double) -> Bool {
        state.withLock { $0.note(key, error, cause, now: now) }
    }

    func clear(beginning keys: [String]) {
        state.withLock { state in for key in state.isEmpty ? [] : keys { state.clear(beginning: key) } }
    }

    func clear(_ keys: @autoclosure () -> [String]) {
        state.withLock { state in for key in state.isEmpty ? [] : keys() { state.clear(key) } }
    }
}
