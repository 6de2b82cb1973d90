import PipelineSupport
import Synchronization

/// When this process has purged which names, by a clock of its own whose readings are all different: microseconds, which
/// are the marks of `ObjectTier`.
final class PurgeTimes: Sendable {
    private struct State {
        var last: UInt64 = 0
        var names: [String: UInt64] = [:]
        /// What began before is void, whatever its names.
        var floor: UInt64 = 0
        /// What began before is void, although nothing was removed.
        var void: UInt64 = 0
        /// The purges written by this process, by their texts.
        var own: [String: UInt64] = [:]

        mutating func tick() -> UInt64 {
            last = max(last + 1, UInt64(SystemClock.monotonic.seconds * 1e6))
            return last
        }
    }

    private let state = Mutex(State())

    /// A reading of now, later than every one before.
    func tick() -> UInt64 { state.withLock { $0.tick() } }

    /// Notes a purge that has been written, and returns when.
    ///
    /// - Parameters:
    ///   - names: sources and digests.
    ///   - text: what the purge is called in the store; nil if it has no object of its own.
    @discardableResult
    func note(_ names: Set<String>, as text: String? = nil) -> UInt64 {
        state.withLock { state in
            let now = state.tick()
            for name in names { state.names[name] = now }
            if let text { state.own[text] = now }
            if state.names.count > PurgeLog.limit || state.own.count > PurgeLog.limit {
                (state.names, state.own, state.floor) = ([:], [:], now)
            }
            return now
        }
    }

    /// The latest mark that may lie before what a store has written, since its clock shows seconds only.
    func mark(of answer: ObjectAnswer) -> UInt64 {
        let now = tick()
        return now - min(now, UInt64(max(0, (answer.age ?? 0) - 1) * 1e6))
    }

    /// Voids all work in flight.
    func noteAll() -> UInt64 {
        state.withLock { state in
            state.void = state.tick()
            return state.void
        }
    }

    /// Whether one of these names was purged by this process since a mark.
    func haveBeenPurged(_ names: [String], since mark: UInt64) -> Bool {
        state.withLock { state in
            mark < max(state.floor, state.void) || names.contains { state.names[$0].map { $0 > mark } ?? false }
        }
    }

    /// When this process wrote a purge; nil if another one did.
    func time(of text: String) -> UInt64? { state.withLock { $0.own[text] } }

    /// What this process has purged since a mark.
    func log(since mark: UInt64?) -> PurgeLog {
        state.withLock { state in
            let now = PurgeMark(state.tick())
            guard let mark else { return PurgeLog(mark: now, names: []) }
            if mark < state.floor { return PurgeLog(mark: now, names: nil) }
            return PurgeLog(mark: now, names: Set(state.names.filter { $0.value > mark }.keys))
        }
    }
}
