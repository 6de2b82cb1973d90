import Synchronization

/// Work shared by everybody who asks for the same key while it runs: started once, answered to each waiter exactly
/// once, cancelled when the last waiter leaves.
final class Flights<Value: Sendable>: Sendable {
    typealias Answer = Result<Value, PipelineError>

    private struct Flight {
        var id: UInt64
        var task: Task<Void, Never>?
        var waiters: [UInt64: CheckedContinuation<Answer, Never>] = [:]
        var finishesWhenAbandoned: Bool
    }

    private struct State {
        var flights: [String: Flight] = [:]
        var next: UInt64 = 0
        /// Continuations of `drain()`.
        var drains: [CheckedContinuation<Void, Never>] = []
        /// Waiters cancelled before they were registered.
        var leftEarly: Set<UInt64> = []

        /// Removes a key's work; returns the continuations of `drain()` if it was the last.
        mutating func remove(_ key: String) -> [CheckedContinuation<Void, Never>] {
            flights[key] = nil
            guard flights.isEmpty else { return [] }
            defer { drains = [] }
            return drains
        }
    }

    private let state = Mutex(State())

    /// The number of waiters over all keys.
    var waiting: Int { state.withLock { $0.flights.values.reduce(0) { $0 + $1.waiters.count } } }

    /// Returns when no work is in progress.
    func drain() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if !state.flights.isEmpty { state.drains.append(continuation) }
                return state.flights.isEmpty
            }
            if isIdle { continuation.resume() }
        }
    }

    /// The value of `work` for `key`, and whether another caller's work produced it.
    func value(
        for key: String, priority: RequestPriority, finishWhenAbandoned: Bool,
        work: @escaping @Sendable () async throws(PipelineError) -> Value
    ) async throws(PipelineError) -> (value: Value, isCollapsed: Bool) {
        let waiter = state.withLock { state in
            state.next += 1
            return state.next
        }
        let joined = Mutex(false)
        let answer: Answer = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isFollower = join(
                    key, waiter: waiter, continuation: continuation, priority: priority,
                    finishWhenAbandoned: finishWhenAbandoned, work: work)
                joined.withLock { $0 = isFollower }
            }
        } onCancel: {
            leave(key, waiter: waiter)
        }
        // The cancellation handler has run or never will: forget a cancellation that raced with the answer.
        state.withLock { _ = $0.leftEarly.remove(waiter) }
        return (try answer.get(), joined.withLock { $0 })
    }

    private func join(
        _ key: String, waiter: UInt64, continuation: CheckedContinuation<Answer, Never>, priority: RequestPriority,
        finishWhenAbandoned: Bool, work: @escaping @Sendable () async throws(PipelineError) -> Value
    ) -> Bool {
        let action: JoinAction = state.withLock { state in
            if state.leftEarly.remove(waiter) != nil { return .resume }
            if state.flights[key] != nil {
                state.flights[key]!.waiters[waiter] = continuation
                state.flights[key]!.finishesWhenAbandoned =
                    state.flights[key]!.finishesWhenAbandoned || finishWhenAbandoned
                return .joined(state.flights[key]!.task)
            }
            state.flights[key] = Flight(
                id: waiter, task: nil, waiters: [waiter: continuation], finishesWhenAbandoned: finishWhenAbandoned)
            return .started(waiter)
        }
        switch action {
        case .resume:
            continuation.resume(returning: .failure(.cancelledByCaller))
            return false
        case .joined(let task):
            task?.escalatePriority(to: priority.taskPriority)
            return true
        case .started(let id):
            let task = Task(priority: priority.taskPriority) {
                let answer: Answer
                do throws(PipelineError) {
                    answer = .success(try await work())
                } catch {
                    answer = .failure(error)
                }
                self.finish(key, id: id, with: answer)
            }
            let isOver = state.withLock { state in
                guard state.flights[key]?.id == id else { return true }
                state.flights[key]!.task = task
                return false
            }
            // The last waiter left before there was a task to cancel, or the task has ended and ignores this.
            if isOver { task.cancel() }
            return false
        }
    }

    private func leave(_ key: String, waiter: UInt64) {
        typealias Left = (CheckedContinuation<Answer, Never>?, Task<Void, Never>?, [CheckedContinuation<Void, Never>])
        let (continuation, task, drains) = state.withLock { state -> Left in
            guard let continuation = state.flights[key]?.waiters.removeValue(forKey: waiter) else {
                // Either the answer was already on its way, or the waiter is not registered yet.
                state.leftEarly.insert(waiter)
                return (nil, nil, [])
            }
            guard let flight = state.flights[key], flight.waiters.isEmpty, !flight.finishesWhenAbandoned else {
                return (continuation, nil, [])
            }
            // No caller may join work that is being cancelled.
            return (continuation, flight.task, state.remove(key))
        }
        task?.cancel()
        for drain in drains { drain.resume() }
        continuation?.resume(returning: .failure(.cancelledByCaller))
    }

    private func finish(_ key: String, id: UInt64, with answer: Answer) {
        typealias Ended = ([CheckedContinuation<Answer, Never>], [CheckedContinuation<Void, Never>])
        let (waiters, drains) = state.withLock { state -> Ended in
            guard let flight = state.flights[key], flight.id == id else { return ([], []) }
            return (Array(flight.waiters.values), state.remove(key))
        }
        for waiter in waiters { waiter.resume(returning: answer) }
        for drain in drains { drain.resume() }
    }
}

/// What `join` has to do once the lock is released.
private enum JoinAction {
    case resume
    case started(UInt64)
    case joined(Task<Void, Never>?)
}

extension PipelineError {
    static let cancelledByCaller = PipelineError(.cancelled, "the request was cancelled")
}
