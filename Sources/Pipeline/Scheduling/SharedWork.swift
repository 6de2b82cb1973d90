package import PipelineSupport
import Synchronization

/// Reports the progress of shared work to all waiters. For a fetch, these are the bytes received and expected.
package typealias WorkReport = @Sendable (_ done: Int, _ expected: Int?) -> Void

/// Shares work among all concurrent callers in this process that use the same key. The work is started once, and each
/// caller receives its result exactly once. The work is cancelled when the last caller is cancelled, and runs at the
/// priority of the most urgent waiting caller.
///
/// A caller first looks up the value. Then it joins the work for its key, or starts it. The work begins with another
/// look-up, because earlier work may have finished after the caller's look-up.
package final class SharedWork<Value: Sendable, Failure: CancellableError>: Sendable {
    private typealias Outcome = Result<Value, Failure>

    private struct Waiter {
        /// Resumed with nil if the caller must try again.
        let continuation: CheckedContinuation<Outcome?, Never>
        let priority: TaskPriority
        let onReport: WorkReport?
    }

    private struct Work {
        let id: UInt64
        /// The priority of the caller that started the work.
        let priority: TaskPriority
        /// The priority of the task, or the priority to give it when it has been created.
        var urgency: TaskPriority
        var task: Task<Void, Never>?
        var waiters: [UInt64: Waiter] = [:]
        var finishesWhenAbandoned: Bool
        /// The latest report.
        var report: (done: Int, expected: Int?)?

        /// Raises the urgency to at least this priority. Returns the task to escalate, if any.
        mutating func raise(to priority: TaskPriority) -> Task<Void, Never>? {
            guard priority > urgency else { return nil }
            urgency = priority
            return task
        }
    }

    private struct State {
        var works: [ByteString: Work] = [:]
        var next: UInt64 = 0
        var drains: [CheckedContinuation<Void, Never>] = []

        /// Removes the work for a key. Returns the continuations of `drain()` if no work is left.
        mutating func remove(_ key: ByteString) -> [CheckedContinuation<Void, Never>] {
            works[key] = nil
            guard works.isEmpty else { return [] }
            defer { drains = [] }
            return drains
        }
    }

    /// The action for `join` after it has released the lock.
    private enum JoinAction {
        case resume
        case started
        case joined(raising: Task<Void, Never>?, report: (done: Int, expected: Int?)?)
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of waiters for all keys.
    package var waiting: Int { state.withLock { $0.works.values.reduce(0) { $0 + $1.waiters.count } } }

    /// Returns when no work is in progress.
    package func drain() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if !state.works.isEmpty { state.drains.append(continuation) }
                return state.works.isEmpty
            }
            if isIdle { continuation.resume() }
        }
    }

    /// Returns a closure that reports progress to current and future waiters.
    package func reporter(for key: String) -> WorkReport {
        let key = ByteString(key)
        return { [self] done, expected in
            let waiters = state.withLock { state -> [Waiter] in
                guard state.works[key] != nil else { return [] }
                state.works[key]!.report = (done, expected)
                return state.works[key]!.waiters.values.filter { $0.onReport != nil }
            }
            for waiter in waiters { waiter.onReport?(done, expected) }
        }
    }

    /// Returns the value for `key`, and whether the work of another caller produced it.
    ///
    /// - Parameters:
    ///   - lookUp: a closure that returns a value that another process or task has stored in the meantime, or nil if no
    ///     value was stored.
    ///   - onReport: a closure that receives the reports of `reporter(for:)`.
    ///   - make: a closure that produces the value.
    package func value(
        for key: String, priority: TaskPriority, finishWhenAbandoned: Bool,
        lookUp: @escaping @Sendable () async -> Value? = { nil }, onReport: WorkReport? = nil,
        make: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> (value: Value, isCoalesced: Bool) {
        let key = ByteString(key)
        let work = { @Sendable () async throws(Failure) in
            if let value = await lookUp() { return value }
            return try await make()
        }
        while true {
            let (answer, isCoalesced) = await answer(
                key, priority: priority, finishWhenAbandoned: finishWhenAbandoned, onReport, work: work)
            if let answer { return (try answer.get(), isCoalesced) }
        }
    }

    /// Returns the result of the work for `key`, and whether another caller started the work. The result is nil if the
    /// work was refused for lack of urgency and this caller is more urgent.
    private func answer(
        _ key: ByteString, priority: TaskPriority, finishWhenAbandoned: Bool, _ onReport: WorkReport?,
        work: @escaping @Sendable () async throws(Failure) -> Value
    ) async -> (Outcome?, isCoalesced: Bool) {
        let waiter = state.withLock { state in
            state.next += 1
            return state.next
        }
        let joined = Mutex(false)
        let answer: Outcome? = await withTaskCancellationHandler {
            await withTaskPriorityEscalationHandler {
                await withCheckedContinuation { continuation in
                    let isFollower = join(
                        key, waiter: waiter,
                        Waiter(continuation: continuation, priority: priority, onReport: onReport),
                        finishWhenAbandoned: finishWhenAbandoned, work: work)
                    joined.withLock { $0 = isFollower }
                }
            } onPriorityEscalated: { _, priority in
                raise(key, waiter: waiter, to: priority)
            }
        } onCancel: {
            removeWaiter(key, waiter: waiter)
        }
        return (answer, joined.withLock { $0 })
    }

    private func join(
        _ key: ByteString, waiter: UInt64, _ entry: Waiter, finishWhenAbandoned: Bool,
        work: @escaping @Sendable () async throws(Failure) -> Value
    ) -> Bool {
        var urgency = entry.priority
        let action: JoinAction = state.withLock { state in
            // A task that runs above its base priority was escalated by a more urgent task that waits for it. Later
            // escalations reach this waiter.
            if let base = Task.basePriority, Task.currentPriority > base {
                urgency = max(urgency, Task.currentPriority)
            }
            // Checked while holding the lock, so that a later cancellation finds the waiter.
            if Task.isCancelled { return .resume }
            if state.works[key] != nil {
                state.works[key]!.waiters[waiter] = entry
                state.works[key]!.finishesWhenAbandoned =
                    state.works[key]!.finishesWhenAbandoned || finishWhenAbandoned
                return .joined(raising: state.works[key]!.raise(to: urgency), report: state.works[key]!.report)
            }
            state.works[key] = Work(
                id: waiter, priority: entry.priority, urgency: urgency, waiters: [waiter: entry],
                finishesWhenAbandoned: finishWhenAbandoned)
            return .started
        }
        switch action {
        case .resume:
            entry.continuation.resume(returning: .failure(.cancelled))
            return false
        case .joined(let task, let report):
            task?.escalatePriority(to: urgency)
            if let report { entry.onReport?(report.done, report.expected) }
            return true
        case .started:
            let task = Task(priority: urgency) {
                self.finish(key, id: waiter, with: await Result(of: work))
            }
            let raised: TaskPriority? = state.withLock { state in
                guard state.works[key]?.id == waiter else { return nil }
                state.works[key]!.task = task
                return state.works[key]!.urgency
            }
            if let raised {
                if raised > urgency { task.escalatePriority(to: raised) }
            } else {
                // Either the last waiter left before there was a task to cancel, or the task has finished and ignores
                // the cancellation.
                task.cancel()
            }
            return false
        }
    }

    /// Escalates the work because a task that waits for it has become more urgent.
    private func raise(_ key: ByteString, waiter: UInt64, to priority: TaskPriority) {
        let task = state.withLock { state in
            state.works[key]?.waiters[waiter] == nil ? nil : state.works[key]?.raise(to: priority)
        }
        task?.escalatePriority(to: priority)
    }

    private func removeWaiter(_ key: ByteString, waiter: UInt64) {
        typealias Left = (Waiter?, Task<Void, Never>?, [CheckedContinuation<Void, Never>])
        let (entry, task, drains) = state.withLock { state -> Left in
            // Without such a waiter, the result is already being delivered, or the waiter is not registered yet.
            guard let entry = state.works[key]?.waiters.removeValue(forKey: waiter) else { return (nil, nil, []) }
            guard let work = state.works[key], work.waiters.isEmpty, !work.finishesWhenAbandoned else {
                return (entry, nil, [])
            }
            // No caller may join work that is being cancelled.
            return (entry, work.task, state.remove(key))
        }
        task?.cancel()
        for drain in drains { drain.resume() }
        entry?.continuation.resume(returning: .failure(.cancelled))
    }

    private func finish(_ key: ByteString, id: UInt64, with answer: Outcome) {
        typealias Ended = (Work?, [CheckedContinuation<Void, Never>])
        let (work, drains) = state.withLock { state -> Ended in
            guard let work = state.works[key], work.id == id else { return (nil, []) }
            return (work, state.remove(key))
        }
        guard let work else { return }
        var isRefused = false
        if case .failure(let error) = answer { isRefused = error.isLackOfUrgency }
        for waiter in work.waiters.values {
            // Waiters that are no more urgent would be refused as well, one after another.
            waiter.continuation.resume(returning: isRefused && waiter.priority > work.priority ? nil : answer)
        }
        for drain in drains { drain.resume() }
    }
}
