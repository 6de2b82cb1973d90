import PipelineSupport
import Synchronization

/// Counters of background validations (RFC 5861 §3).
package struct BackgroundCounters: Sendable, Hashable {
    package var started = 0
    /// The number of validations completed with a response from the origin.
    package var succeeded = 0
    /// The number of validations that failed. The errors are not reported.
    package var failed = 0
    /// The number of validations not started because the same validation was already running.
    package var collapsed = 0
    /// The number of validations not started because too many were running or the pipeline was shutting down.
    package var refused = 0
    package var running = 0
    package init() {}
}

/// Runs work that outlives the request that started it. There is one task per key at a time, and the number of tasks is
/// bounded.
final class BackgroundWork: Sendable {
    private struct State {
        var counters = BackgroundCounters()
        var running: Set<ByteString> = []
        var isClosed = false
        var drains: [CheckedContinuation<Void, Never>] = []
    }

    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: the maximum number of concurrent tasks.
    init(limit: Int) { self.limit = limit }

    var counters: BackgroundCounters { state.withLock { $0.counters } }

    /// Starts `work` at low priority, unless work for the key is already running or the limit has been reached.
    func start(_ key: String, _ work: @escaping @Sendable () async throws(PipelineError) -> Void) {
        let key = ByteString(key)
        let isStarted = state.withLock { state in
            if state.running.contains(key) {
                state.counters.collapsed += 1
                return false
            }
            guard !state.isClosed, state.running.count < limit else {
                state.counters.refused += 1
                return false
            }
            state.running.insert(key)
            state.counters.started += 1
            state.counters.running = state.running.count
            return true
        }
        guard isStarted else { return }
        Task(priority: .utility) {
            do throws(PipelineError) {
                try await work()
                finish(key, hasSucceeded: true)
            } catch {
                finish(key, hasSucceeded: false)
            }
        }
    }

    /// Returns when no work is running.
    func drain() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if !state.running.isEmpty { state.drains.append(continuation) }
                return state.running.isEmpty
            }
            if isIdle { continuation.resume() }
        }
    }

    /// Starts no more work, and returns when no work is running.
    func close() async {
        state.withLock { $0.isClosed = true }
        await drain()
    }

    private func finish(_ key: ByteString, hasSucceeded: Bool) {
        let drains = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.running.remove(key)
            state.counters.running = state.running.count
            if hasSucceeded { state.counters.succeeded += 1 } else { state.counters.failed += 1 }
            guard state.running.isEmpty else { return [] }
            defer { state.drains = [] }
            return state.drains
        }
        for drain in drains { drain.resume() }
    }
}
