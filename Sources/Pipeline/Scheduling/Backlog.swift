import Synchronization

/// Bounds the amount of work of one kind that is in progress or waiting.
///
/// Slots or workers run the work by urgency. The backlog decides whether work may wait for them at all, so that callers
/// learn immediately if it would take too long.
final class Backlog: Sendable {
    private struct State {
        var count = 0
        /// The amount of work for each origin and for each network.
        var (ofOrigin, ofNetwork) = ([String: Int](), [String: Int]())
        var refused = 0
        /// The moving average of the time between completions while work remained, in seconds.
        var interval = 0.0
        var lastEnd: ContinuousClock.Instant?
    }

    /// All networks together may have this many times the work of a single network.
    private static let networks = 8
    /// An origin with at least this much work may use only the first half of the total. The second half is reserved for
    /// other origins.
    private static let few = 4

    private let what: String
    private let limit: Int?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - what: a plural noun for the work, for messages.
    ///   - limit: the maximum amount of work in progress or waiting, or nil if there is no limit.
    init(_ what: String, limit: Int?) {
        self.what = what
        self.limit = limit
    }

    /// The amount of work in progress or waiting now.
    var count: Int { state.withLock { $0.count } }
    /// The number of times that work was refused.
    var refused: Int { state.withLock { $0.refused } }

    /// Runs work, unless too much is in progress or waiting.
    ///
    /// - Parameters:
    ///   - priority: the urgency of the work. Work with low priority may use half of the limit, and work with normal
    ///     priority nine tenths, so that there is room for more urgent work.
    ///   - origin: the origin that the work is for, or nil if the work has no origin. An origin may use three quarters
    ///     of the limit for the priority, so that a slow origin leaves room for others.
    ///   - network: the network of the origin (`SourceURL.network`). Each network has its own `limit`. If nil, `limit`
    ///     applies to all work.
    /// - Throws: `overloaded`, with an estimate of when the backlog will be done, or any error of `work`.
    func run<Value>(
        _ priority: RequestPriority, of origin: String? = nil, in network: String? = nil,
        _ work: () async throws(PipelineError) -> Value
    ) async throws(PipelineError) -> Value {
        try enter(priority, origin, network)
        defer { release(origin, network) }
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
                    "\(whose ?? "\(state.count) \(what)") are in progress or waiting, which is the limit (`server.queue`)",
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

    private func release(_ origin: String?, _ network: String?) {
        let now = ContinuousClock.now
        state.withLock { state in
            if let last = state.lastEnd {
                let seconds = (now - last) / .seconds(1)
                state.interval += (seconds - state.interval) / 16
            }
            state.count -= 1
            if let origin, let own = state.ofOrigin[origin] { state.ofOrigin[origin] = own > 1 ? own - 1 : nil }
            if let network, let own = state.ofNetwork[network] { state.ofNetwork[network] = own > 1 ? own - 1 : nil }
            // Idle time is not part of the average.
            state.lastEnd = state.count == 0 ? nil : now
        }
    }
}
