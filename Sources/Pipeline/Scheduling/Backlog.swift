import Synchronization

/// Bounds the work of one kind that is in progress or waiting. Where it is done, slots or workers take it up by urgency;
/// this decides what may wait for them at all, so that callers learn at once that it would take too long.
final class Backlog: Sendable {
    private struct State {
        var count = 0
        var refused = 0
        /// Seconds between ends of work while some was left, a moving average.
        var interval = 0.0
        var lastEnd: ContinuousClock.Instant?
    }

    private let what: String
    private let limit: Int?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - what: the work in messages, a plural.
    ///   - limit: the most in progress and waiting; nil for no bound.
    init(_ what: String, limit: Int?) {
        self.what = what
        self.limit = limit
    }

    /// In progress and waiting, now.
    var count: Int { state.withLock { $0.count } }
    /// How often work was refused.
    var refused: Int { state.withLock { $0.refused } }

    /// Does the work, unless too much is in progress and waiting.
    ///
    /// - Parameter priority: low work may take half of the bound and normal work nine tenths, so that what is more urgent
    ///   finds room.
    /// - Throws: `overloaded`, with the time in which the backlog should be done; else what the work throws.
    func run<Value>(
        _ priority: RequestPriority, _ work: () async throws(PipelineError) -> Value
    ) async throws(PipelineError) -> Value {
        try enter(priority)
        defer { leave() }
        return try await work()
    }

    private func enter(_ priority: RequestPriority) throws(PipelineError) {
        let refusal = state.withLock { state -> PipelineError? in
            if let limit, state.count >= Self.share(limit, priority) {
                state.refused += 1
                let seconds = Int((Double(state.count) * state.interval).rounded(.up))
                return .overloaded(
                    "\(state.count) \(what) are in progress or waiting", retryAfter: min(max(1, seconds), 60))
            }
            state.count += 1
            return nil
        }
        if let refusal { throw refusal }
    }

    private static func share(_ limit: Int, _ priority: RequestPriority) -> Int {
        switch priority {
        case .low: max(1, limit / 2)
        case .normal: max(1, limit - limit / 10)
        case .high: limit
        }
    }

    private func leave() {
        let now = ContinuousClock.now
        state.withLock { state in
            if let last = state.lastEnd {
                let seconds = (now - last) / .seconds(1)
                state.interval += (seconds - state.interval) / 16
            }
            state.count -= 1
            // An idle time is not part of the average.
            state.lastEnd = state.count == 0 ? nil : now
        }
    }
}
