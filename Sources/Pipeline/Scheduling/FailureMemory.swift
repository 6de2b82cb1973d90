import HTTPCaching
import PipelineSupport
import Synchronization

/// Remembers for a while what failed several times in a row, so that a broken origin is not contacted for every request
/// (`errorMaxAge`, `errorAttempts`). In memory only, and bounded. All requests share it.
final class FailureMemory: Sendable {
    /// A failure, and the error that answers requests in the meantime.
    struct Failure: Sendable {
        var error: PipelineError
        var cause: OriginFailure
        var count: Int
        /// Unix seconds.
        var last: Double
        /// Seconds for which it answers.
        var maxAge: Double
    }

    /// Seconds; nil for a few, and for the usual failures of variants only.
    private let maxAge: Int?
    private let attempts: Int
    /// The most entries kept; beyond it the oldest is dropped.
    private let capacity: Int
    private let failures = Mutex<[ByteString: Failure]>([:])

    init(maxAge: Int?, attempts: Int, capacity: Int = 4096) {
        self.maxAge = maxAge
        self.attempts = max(1, attempts)
        self.capacity = capacity
    }

    /// The failure that answers for the first of the keys that has one; nil if the origin is to be asked, or the clock
    /// was set back.
    func remembered(_ keys: @autoclosure () -> [String], now: Double) -> Failure? {
        failures.withLock { failures in
            for key in failures.isEmpty ? [] : keys() {
                if let failure = failures[ByteString(key)], failure.count >= attempts, now >= failure.last,
                    now - failure.last < failure.maxAge
                {
                    return failure
                }
            }
            return nil
        }
    }

    /// Adds a failure. Returns whether there have been enough in a row to be remembered.
    ///
    /// - Parameter isForVariant: whether a variant was wanted.
    func note(
        _ key: String, _ error: PipelineError, _ cause: OriginFailure, isForVariant: Bool = false, now: Double
    ) -> Bool {
        guard let maxAge = maxAge(of: cause, isForVariant: isForVariant) else { return false }
        let key = ByteString(key)
        return failures.withLock { failures in
            // An old failure does not count as consecutive with this one.
            let before = failures[key].map { now - $0.last < max(maxAge, 60) ? $0.count : 0 } ?? 0
            failures[key] = Failure(error: error, cause: cause, count: before + 1, last: now, maxAge: maxAge)
            if failures.count > capacity, let oldest = failures.min(by: { $0.value.last < $1.value.last }) {
                failures[oldest.key] = nil
            }
            return before + 1 >= attempts
        }
    }

    /// Seconds for which a failure is remembered; nil if it is not.
    private func maxAge(of cause: OriginFailure, isForVariant: Bool) -> Double? {
        if let maxAge { return maxAge > 0 ? Double(maxAge) : nil }
        let isUsual =
            switch cause {
            case .noResponse: false
            case .status(let status): isForVariant && (status == 404 || status == 410 || (500...599).contains(status))
            case .unusable: true
            }
        return isUsual ? Double(CachingConfiguration.usualErrorMaxAge) : nil
    }

    func clear(_ keys: @autoclosure () -> [String]) {
        failures.withLock { failures in for key in failures.isEmpty ? [] : keys() { failures[ByteString(key)] = nil } }
    }

    /// Forgets failures of the keys, and of keys that extend one of them with further lines.
    func clear(beginning keys: [String]) {
        failures.withLock { failures in
            for other in failures.keys
            where keys.contains(where: { (other.text + "\n").utf8.starts(with: ($0 + "\n").utf8) }) {
                failures[other] = nil
            }
        }
    }
}
