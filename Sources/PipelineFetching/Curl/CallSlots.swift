import PipelineSupport
import Synchronization

/// Limits the number of concurrent calls. The most urgent waiting caller gets the next slot.
final class CallSlots: Sendable {
    private struct State {
        var free: Int
        var lastID: UInt64 = 0
        var waiting = UrgencyQueue<CheckedContinuation<Bool, Never>>(oldestEvery: 8)
    }

    private let state: Mutex<State>

    init(_ count: Int) { state = Mutex(State(free: max(1, count))) }

    /// Waits for a slot. The caller returns the slot by calling `release()`.
    ///
    /// - Returns: whether the caller has a slot. False if the calling task was cancelled.
    func acquire() async -> Bool {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return await withTaskCancellationHandler {
            await withTaskPriorityEscalationHandler {
                await withCheckedContinuation { wait($0, id) }
            } onPriorityEscalated: { _, priority in
                state.withLock { _ = $0.waiting.raise(id: id, to: priority.rawValue) }
            }
        } onCancel: {
            state.withLock { $0.waiting.remove(id: id) }?.resume(returning: false)
        }
    }

    private func wait(_ continuation: CheckedContinuation<Bool, Never>, _ id: UInt64) {
        let hasSlot = state.withLock { state -> Bool? in
            // The cancellation handler may have run before this call was queued.
            if Task.isCancelled { return false }
            if state.free > 0 {
                state.free -= 1
                return true
            }
            state.waiting.push(continuation, id: id, priority: Task.currentPriority.rawValue)
            return nil
        }
        if let hasSlot { continuation.resume(returning: hasSlot) }
    }

    func release() {
        let next = state.withLock { state in
            let next = state.waiting.pop()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume(returning: true)
    }
}
