package import PipelineSupport
import Synchronization

/// Work shared by everyone who asks for the same key while it runs, in this process and in others on the cache folder:
/// started once, answered to each caller exactly once, cancelled when the last caller leaves.
///
/// A caller looks first, by itself. Then it joins the work for its key, or starts it: acquires the key's lock, looks
/// once more, since the previous lock holder may have stored the result, and only then makes the value.
package final class SharedWork<Value: Sendable, Failure: CancellableError>: Sendable {
    private typealias Answer = Result<Value, Failure>

    private struct Work {
        var id: UInt64
        var task: Task<Void, Never>?
        var waiters: [UInt64: CheckedContinuation<Answer, Never>] = [:]
        var finishesWhenAbandoned: Bool
    }

    private struct State {
        var works: [ByteString: Work] = [:]
        var next: UInt64 = 0
        var drains: [CheckedContinuation<Void, Never>] = []
        /// Waiters cancelled before they were registered.
        var leftEarly: Set<UInt64> = []

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
        case started(UInt64)
        case joined(Task<Void, Never>?)
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

    /// The value for `key`, and whether another caller's work produced it.
    ///
    /// - Parameters:
    ///   - isShared: whether other processes may want the same, so that it is worth a lock.
    ///   - lookUp: finds a value stored meanwhile by another process or task.
    ///   - stored: what other processes will find once the value is stored; nil if they cannot use it.
    ///   - make: makes the value.
    package func value(
        for key: String, priority: TaskPriority, finishWhenAbandoned: Bool, isShared: Bool = false,
        lookUp: @escaping @Sendable () async -> Value? = { nil },
        stored: @escaping @Sendable (Value) -> Tiers.Shared? = { _ in nil },
        make: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> (value: Value, isCoalesced: Bool) {
        let key = ByteString(key)
        let waiter = state.withLock { state in
            state.next += 1
            return state.next
        }
        let joined = Mutex(false)
        let answer: Answer = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isFollower = join(
                    key, waiter: waiter, continuation: continuation, priority: priority,
                    finishWhenAbandoned: finishWhenAbandoned
                ) { [self] () async throws(Failure) in
                    let locks = isShared ? tiers?.folder?.locks : nil
                    return try await makeOnce(key, locks, lookUp, stored, make)
                }
                joined.withLock { $0 = isFollower }
            }
        } onCancel: {
            leave(key, waiter: waiter)
        }
        // The cancellation handler has run or never will: forget a cancellation that raced with the answer.
        state.withLock { _ = $0.leftEarly.remove(waiter) }
        return (try answer.get(), joined.withLock { $0 })
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
            // On cancellation the next waiter takes over. On failure the key is marked, so waiters do not retry one
            // after another.
            locks.release(hold, isShared: error.isCancellation ? nil : false)
            throw error
        }
    }

    private func join(
        _ key: ByteString, waiter: UInt64, continuation: CheckedContinuation<Answer, Never>, priority: TaskPriority,
        finishWhenAbandoned: Bool, work: @escaping @Sendable () async throws(Failure) -> Value
    ) -> Bool {
        let action: JoinAction = state.withLock { state in
            if state.leftEarly.remove(waiter) != nil { return .resume }
            if state.works[key] != nil {
                state.works[key]!.waiters[waiter] = continuation
                state.works[key]!.finishesWhenAbandoned =
                    state.works[key]!.finishesWhenAbandoned || finishWhenAbandoned
                return .joined(state.works[key]!.task)
            }
            state.works[key] = Work(
                id: waiter, task: nil, waiters: [waiter: continuation], finishesWhenAbandoned: finishWhenAbandoned)
            return .started(waiter)
        }
        switch action {
        case .resume:
            continuation.resume(returning: .failure(.cancelled))
            return false
        case .joined(let task):
            task?.escalatePriority(to: priority)
            return true
        case .started(let id):
            let task = Task(priority: priority) {
                self.finish(key, id: id, with: await Result(of: work))
            }
            let isOver = state.withLock { state in
                guard state.works[key]?.id == id else { return true }
                state.works[key]!.task = task
                return false
            }
            // The last waiter left before there was a task to cancel, or the task has ended and ignores this.
            if isOver { task.cancel() }
            return false
        }
    }

    private func leave(_ key: ByteString, waiter: UInt64) {
        typealias Left = (CheckedContinuation<Answer, Never>?, Task<Void, Never>?, [CheckedContinuation<Void, Never>])
        let (continuation, task, drains) = state.withLock { state -> Left in
            guard let continuation = state.works[key]?.waiters.removeValue(forKey: waiter) else {
                // Either the answer was already on its way, or the waiter is not registered yet.
                state.leftEarly.insert(waiter)
                return (nil, nil, [])
            }
            guard let work = state.works[key], work.waiters.isEmpty, !work.finishesWhenAbandoned else {
                return (continuation, nil, [])
            }
            // No caller may join work that is being cancelled.
            return (continuation, work.task, state.remove(key))
        }
        task?.cancel()
        for drain in drains { drain.resume() }
        continuation?.resume(returning: .failure(.cancelled))
    }

    private func finish(_ key: ByteString, id: UInt64, with answer: Answer) {
        typealias Ended = ([CheckedContinuation<Answer, Never>], [CheckedContinuation<Void, Never>])
        let (waiters, drains) = state.withLock { state -> Ended in
            guard let work = state.works[key], work.id == id else { return ([], []) }
            return (Array(work.waiters.values), state.remove(key))
        }
        for waiter in waiters { waiter.resume(returning: answer) }
        for drain in drains { drain.resume() }
    }
}
