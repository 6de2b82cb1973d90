package import PipelineSupport
import Synchronization

/// Says how far shared work is, to all that wait for it: for a fetch, bytes received and expected.
package typealias WorkReport = @Sendable (_ done: Int, _ expected: Int?) -> Void

/// Work shared by everyone who asks for the same key while it runs, in this process and in others on the cache folder:
/// started once, answered to each caller exactly once, cancelled when the last caller leaves, as urgent as the most
/// urgent caller that waits for it.
///
/// A caller looks first, by itself. Then it joins the work for its key, or starts it: acquires the key's lock, looks
/// once more, since the previous lock holder may have stored the result, and only then makes the value.
package final class SharedWork<Value: Sendable, Failure: CancellableError>: Sendable {
    private typealias Answer = Result<Value, Failure>

    private struct Waiter {
        /// Resumed with nil if the caller has to ask again.
        let continuation: CheckedContinuation<Answer?, Never>
        let priority: TaskPriority
        let onReport: WorkReport?
    }

    private struct Work {
        let id: UInt64
        /// The priority of the caller that started it.
        let priority: TaskPriority
        /// The priority that its task has, or will be given once there is one.
        var urgency: TaskPriority
        var task: Task<Void, Never>?
        var waiters: [UInt64: Waiter] = [:]
        var finishesWhenAbandoned: Bool
        /// The last report.
        var report: (done: Int, expected: Int?)?

        /// Makes it at least this urgent; returns the task to escalate.
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

        /// Removes a key's work; returns the continuations of `drain()` if it was the last.
        mutating func remove(_ key: ByteString) -> [CheckedContinuation<Void, Never>] {
            works[key] = nil
            guard works.isEmpty else { return [] }
            defer { drains = [] }
            return drains
        }
    }

    /// What `join` has to do once the lock is released.
    private enum JoinAction {
        case resume
        case started
        case joined(raising: Task<Void, Never>?, report: (done: Int, expected: Int?)?)
    }

    private let state = Mutex(State())
    private let kind: KeyLocks.Kind
    private let tiers: Tiers?

    /// - Parameter tiers: with the folder whose other processes want the same; nil if there are none.
    package init(_ kind: KeyLocks.Kind = .original, tiers: Tiers? = nil) {
        self.kind = kind
        self.tiers = tiers
    }

    /// The number of waiters over all keys.
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

    /// What says how far the work for `key` is, to those who wait for it then and to those who join later.
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

    /// The value for `key`, and whether another caller's work produced it.
    ///
    /// - Parameters:
    ///   - isShared: whether other processes may want the same, so that it is worth a lock.
    ///   - lookUp: finds a value stored meanwhile by another process or task.
    ///   - stored: what other processes will find once the value is stored; nil if they cannot use it.
    ///   - onReport: hears what the work's reporter says (`reporter(for:)`).
    ///   - make: makes the value.
    package func value(
        for key: String, priority: TaskPriority, finishWhenAbandoned: Bool, isShared: Bool = false,
        lookUp: @escaping @Sendable () async -> Value? = { nil },
        stored: @escaping @Sendable (Value) -> Tiers.Shared? = { _ in nil }, onReport: WorkReport? = nil,
        make: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> (value: Value, isCoalesced: Bool) {
        let key = ByteString(key)
        let work = { @Sendable [self] () async throws(Failure) in
            let locks = isShared ? tiers?.folder?.locks : nil
            return try await makeOnce(key, locks, lookUp, stored, make)
        }
        while true {
            let (answer, isCoalesced) = await answer(
                key, priority: priority, finishWhenAbandoned: finishWhenAbandoned, onReport, work: work)
            if let answer { return (try answer.get(), isCoalesced) }
        }
    }

    /// The answer of the work for `key`, and whether another caller started it; nil if the work was refused to that
    /// caller, and this one is more urgent.
    private func answer(
        _ key: ByteString, priority: TaskPriority, finishWhenAbandoned: Bool, _ onReport: WorkReport?,
        work: @escaping @Sendable () async throws(Failure) -> Value
    ) async -> (Answer?, isCoalesced: Bool) {
        let waiter = state.withLock { state in
            state.next += 1
            return state.next
        }
        let joined = Mutex(false)
        let answer: Answer? = await withTaskCancellationHandler {
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
            leave(key, waiter: waiter)
        }
        return (answer, joined.withLock { $0 })
    }

    /// Looks once more when it is this process's turn, then makes the value.
    private func makeOnce(
        _ key: ByteString, _ locks: KeyLocks?, _ lookUp: () async -> Value?, _ stored: (Value) -> Tiers.Shared?,
        _ make: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let hold: KeyLocks.Hold?
        do throws(CancellationError) { hold = try await locks?.hold(kind, key.text) } catch { throw .cancelled }
        if let value = await lookUp() {
            if let hold {
                locks?.note { $0.shared += 1 }
                locks?.release(hold, isShared: nil)
            }
            return value
        }
        guard let tiers, let locks, let hold else { return try await make() }
        do throws(Failure) {
            let value = try await make()
            if let shared = stored(value) {
                // Released after the changes that the work has queued, so that the next process finds the result.
                tiers.afterStoring(shared) { locks.release(hold, isShared: $0) }
            } else {
                locks.release(hold, isShared: false)
            }
            return value
        } catch {
            // On cancellation, and on a refusal of this process, the next waiter takes over. On failure the key is marked,
            // so waiters do not retry one after another.
            locks.release(hold, isShared: error.isCancellation || error.isLackOfUrgency ? nil : false)
            throw error
        }
    }

    private func join(
        _ key: ByteString, waiter: UInt64, _ entry: Waiter, finishWhenAbandoned: Bool,
        work: @escaping @Sendable () async throws(Failure) -> Value
    ) -> Bool {
        var urgency = entry.priority
        let action: JoinAction = state.withLock { state in
            // A caller's task above its base priority has a more urgent task that waits for it. What raises it from now on finds
            // the waiter.
            if let base = Task.basePriority, Task.currentPriority > base {
                urgency = max(urgency, Task.currentPriority)
            }
            // Checked with the lock held: a later cancellation finds the waiter.
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
                // The last waiter left before there was a task to cancel, or the task has ended and ignores this.
                task.cancel()
            }
            return false
        }
    }

    /// A task that waits for the work has become more urgent, and with it the work.
    private func raise(_ key: ByteString, waiter: UInt64, to priority: TaskPriority) {
        let task = state.withLock { state in
            state.works[key]?.waiters[waiter] == nil ? nil : state.works[key]?.raise(to: priority)
        }
        task?.escalatePriority(to: priority)
    }

    private func leave(_ key: ByteString, waiter: UInt64) {
        typealias Left = (Waiter?, Task<Void, Never>?, [CheckedContinuation<Void, Never>])
        let (entry, task, drains) = state.withLock { state -> Left in
            // Otherwise the answer is on its way already, or the waiter is not registered yet.
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

    private func finish(_ key: ByteString, id: UInt64, with answer: Answer) {
        typealias Ended = (Work?, [CheckedContinuation<Void, Never>])
        let (work, drains) = state.withLock { state -> Ended in
            guard let work = state.works[key], work.id == id else { return (nil, []) }
            return (work, state.remove(key))
        }
        guard let work else { return }
        var isRefused = false
        if case .failure(let error) = answer { isRefused = error.isLackOfUrgency }
        for waiter in work.waiters.values {
            // Those that are no more urgent would be refused as well, one after another.
            waiter.continuation.resume(returning: isRefused && waiter.priority > work.priority ? nil : answer)
        }
        for drain in drains { drain.resume() }
    }
}
