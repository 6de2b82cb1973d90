import PipelineSupport
import Synchronization

/// The purges by this process, indexed by name. Their times are from a clock that includes the time of suspension, as
/// the store's clock does. These times are the marks of `ObjectTier`.
final class PurgeTimes: Sendable {
    private struct State {
        var journal = PurgeJournal()
        /// The purges that this process has written, by their names in the store.
        var own: [String: PurgeMark] = [:]

        mutating func tick() -> PurgeMark { journal.tick(PurgeMark(seconds: SystemClock.boot.seconds)) }
    }

    private let state = Mutex(State())

    /// Returns a reading of the current time that is later than all previous readings.
    func tick() -> PurgeMark { state.withLock { $0.tick() } }

    /// Records a purge that has been written, and returns its time.
    ///
    /// - Parameters:
    ///   - names: sources and digests.
    ///   - text: the purge's name in the store, or nil if it has no object.
    @discardableResult
    func note(_ names: Set<String>, as text: String? = nil) -> PurgeMark {
        state.withLock { state in
            let now = state.tick()
            state.journal.record(EntrySelection(sources: names), at: now)
            // This is safe, because a forgotten purge gets a later time from the store, which invalidates more entries.
            if state.own.count >= PurgeJournal.maxNames { state.own = [:] }
            if let text { state.own[text] = now }
            return now
        }
    }

    /// Returns the latest mark that may precede what a store has written. The store's clock has a resolution of one
    /// second.
    func mark(of answer: ObjectAnswer) -> PurgeMark {
        let now = tick().rawValue
        return PurgeMark(now - min(now, UInt64(max(0, (answer.age ?? 0) - 1) * 1e6)))
    }

    /// Invalidates all work in progress.
    func noteAll() -> PurgeMark { note(EntrySelection.workInFlight.sources) }

    /// Returns whether this process has purged one of these names since a mark.
    func haveBeenPurged(_ names: [String], since mark: PurgeMark) -> Bool {
        state.withLock { !$0.journal.isCurrent(names, source: names.first, since: mark) }
    }

    /// Returns the time when this process wrote a purge. Returns nil if a different process wrote it.
    func time(of text: String) -> PurgeMark? { state.withLock { $0.own[text] } }
}
