import Synchronization

/// Bounds the work of one kind that is in progress or waiting. Where it is done, slots or workers take it up by urgency;
/// this decides what may wait for them at all, so that callers learn at once that it would take too long.
final class Backlog: Sendable {
    private struct State {
        var count = 0
        /// The counts of each origin and of each network.
        var (ofOrigin, ofNetwork) = ([String: Int](), [String: Int]())
        var refused = 0
        /// Seconds between ends of work while some was left, a moving average.
        var interval = 0.0
        var lastEnd: ContinuousClock.Instant?
    }

    /// All networks together have this many times the room of one.
    private static let networks = 8
    /// An origin with this much work may not use the second half of that room, which is left to other origins.
    private static let few = 4

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
    /// - Parameters:
    ///   - priority: low work may take half of the bound and normal work nine tenths, so that what is more urgent finds
    ///     room.
    ///   - origin: the origin that the work is for, which may take three quarters of that, so that one that is slow leaves
    ///     room for others; nil for work that is for none.
    ///   - network: the origin's network (`SourceURL.network`), which has `limit` for itself; nil if `limit` is for all.
    /// - Throws: `overloaded`, with the time in which the backlog should be done; else what the work throws.
    func run<Value>(
        _ priority: RequestPriority, of origin: String? = nil, in network: String? = nil,
        _ work: () async throws(PipelineError) -> Value
    ) async throws(PipelineError) -> Value {
        try enter(priority, origin, network)
        defer { leave(origin, network) }
        return try await work()
    }

    private func enter(_ priority: RequestPriority, _ origin: String?, _ network: String?) throws(PipelineError) {
        guard let limit else { return state.withLock { $0.count += 1 } }
        let share = Self.share(limit, priority)
        let refusal = state.withLock { state -> PipelineError? in
            let own = origin.flatMap { state.ofOrigin[$0] } ?? 0
            let near = network.map { state.ofNetwork[$0] ?? 0 } ?? state.count
            let most = network == nil ? share : share * Self.networks / (own < Self.few ? 1 : 2)
            guard state.count < most, near < share, own < share - share / 4 else {
                state.refused += 1
                let seconds = Int((Double(state.count) * state.interval).rounded(.up))
                var whose: String?
                if let network, state.count < most { whose = "\(near) \(what) from \(network)" }
                if let origin, near < share, state.count < most { whose = "\(own) \(what) from \(origin)" }
                return .overloaded(
                    "\(whose ?? "\(state.count) \(what)") are in progress or waiting",
                    retryAfter: min(max(1, seconds), 60))
            }
            state.count += 1
            if let origin { state.ofOrigin[origin] = own + 1 }
            if let network { state.ofNetwork[network] = near + 1 }
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

    private func leave(_ origin: String?, _ network: String?) {
        let now = ContinuousClock.now
        state.withLock { state in
            if let last = state.lastEnd {
                let seconds = (now - last) / .seconds(1)
                state.interval += (seconds - state.interval) / 16
            }
            state.count -= 1
            if let origin, let own = state.ofOrigin[origin] { state.ofOrigin[origin] = own > 1 ? own - 1 : nil }
            if let network, let own = state.ofNetwork[network] { state.ofNetwork[network] = own > 1 ? own - 1 : nil }
            // An idle time is not part of the average.
            state.lastEnd = state.count == 0 ? nil : now
        }
    }
}
