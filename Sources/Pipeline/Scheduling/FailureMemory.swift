import HTTPCaching
import PipelineSupport
import Synchronization

/// Remembers failures for a while, so that a broken origin is not contacted for every request (`errorMaxAge`,
/// `errorAttempts`). All requests share the failures, which are kept only in memory and bounded in number.
final class FailureMemory: Sendable {
    /// A failure, and the error to answer requests with.
    struct Failure: Sendable {
        var error: PipelineError
        var cause: OriginFailure
        var count: Int
        /// The time of the last failure, in Unix seconds.
        var last: Double
        /// How long the failure answers requests, in seconds.
        var maxAge: Double
    }

    /// `CachingConfiguration.errorMaxAge`. If nil, only the failures that are remembered by default are kept, and only
    /// for a few seconds.
    private let maxAge: Duration?
    private let attempts: Int
    /// The maximum number of entries. Beyond it, the oldest entry is dropped.
    private let capacity: Int
    private let failures = Mutex<[ByteString: Failure]>([:])

    init(maxAge: Duration?, attempts: Int, capacity: Int = 4096) {
        self.maxAge = maxAge
        self.attempts = max(1, attempts)
        self.capacity = capacity
    }

    /// Returns the remembered failure for the first of the keys that has one. Returns nil if the origin must be
    /// contacted, or if the clock was set back.
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

    /// Adds a failure. Returns whether there have been enough consecutive failures for it to be remembered.
    ///
    /// - Parameter isForVariant: whether the request was for a variant.
    func note(
        _ key: String, _ error: PipelineError, _ cause: OriginFailure, isForVariant: Bool = false, now: Double
    ) -> Bool {
        guard let maxAge = maxAge(of: cause, isForVariant: isForVariant) else { return false }
        let key = ByteString(key)
        return failures.withLock { failures in
            // A failure that happened long ago is not consecutive with this one.
            let before = failures[key].map { now - $0.last < max(maxAge, 60) ? $0.count : 0 } ?? 0
            failures[key] = Failure(error: error, cause: cause, count: before + 1, last: now, maxAge: maxAge)
            if failures.count > capacity, let oldest = failures.min(by: { $0.value.last < $1.value.last }) {
                failures[oldest.key] = nil
            }
            return before + 1 >= attempts
        }
    }

    /// Returns how long a failure is remembered, in seconds, or nil if it is not remembered.
    private func maxAge(of cause: OriginFailure, isForVariant: Bool) -> Double? {
        if let maxAge { return maxAge > .zero ? maxAge.inSeconds : nil }
        let isUsual =
            switch cause {
            case .noResponse: false
            case .status(let status): isForVariant && (status == 404 || status == 410 || (500...599).contains(status))
            case .unusable: true
            }
        return isUsual ? CachingConfiguration.usualErrorMaxAge.inSeconds : nil
    }

    func clear(_ keys: @autoclosure () -> [String]) {
        failures.withLock { failures in for key in failures.isEmpty ? [] : keys() { failures[ByteString(key)] = nil } }
    }

    /// Forgets the failures of the keys, and of keys that continue one of them with further lines.
    func clear(beginning keys: [String]) {
        failures.withLock { failures in
            for other in failures.keys
            where keys.contains(where: { (other.text + "\n").utf8.starts(with: ($0 + "\n").utf8) }) {
                failures[other] = nil
            }
        }
    }
}
