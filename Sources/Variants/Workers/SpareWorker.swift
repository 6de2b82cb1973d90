import PipelineSupport
import CSandbox
import Glibc
import Synchronization

/// A thread that keeps one warm spare beside the slots' workers, and waits for workers that slots hand over: one whose
/// render was cancelled, until it has stopped and is ready again or has to be killed, and killed ones until they end.
///
/// Stopping takes some milliseconds, the end of a killed worker more, as the kernel frees its memory, and the start of
/// another one more still; a slot that takes the spare waits for none of that. There is at most one process more than
/// slots: after the spare is taken, no other is started before the worker it replaced is gone or ready again.
// @unchecked Sendable: all mutable state is under the lock; the descriptor stays open as long as this object exists.
final class SpareWorker: @unchecked Sendable {
    private struct State {
        var ready: WorkerProcess?
        var stopping: StoppingRender?
        /// Workers that were killed, and not waited for yet.
        var killed: [WorkerProcess] = []
        var isClosing = false
    }

    private enum Step {
        case wait(Int32)
        case settle(StoppingRender)
        case bury([WorkerProcess])
        case start
        case end
    }

    private let core: PoolCore
    /// Counts up to wake the thread.
    private let wakeup: Int32
    private let state = Mutex(State())

    /// Starts the thread; nil if the system cannot create one. It starts no worker before a slot's worker is ready.
    init?(core: PoolCore) {
        self.core = core
        wakeup = csandbox_wakeup()
        if wakeup < 0 { return nil }
        guard startThread({ self.run() }) else { return nil }
    }

    deinit { if wakeup >= 0 { close(wakeup) } }

    /// What a slot gives in exchange for the spare.
    enum Exchanged {
        case nothing
        case killed(WorkerProcess)
        case stopping(StoppingRender)
    }

    /// Takes the spare, if it is ready; the caller then owns it.
    func take(for exchanged: Exchanged) -> WorkerProcess? {
        let worker = state.withLock { state -> WorkerProcess? in
            guard let worker = state.ready else { return nil }
            state.ready = nil
            switch exchanged {
            case .nothing: break
            case .killed(let killed): state.killed.append(killed)
            case .stopping(let stopping): state.stopping = stopping
            }
            return worker
        }
        if worker != nil { wake() }
        return worker
    }

    var isReady: Bool { state.withLock { $0.ready != nil } }

    /// Stops the spare, then the thread. No slot may be left, because workers that this thread started die with it.
    func end() {
        state.withLock { $0.isClosing = true }
        wake()
    }

    /// Makes the thread look for work again.
    func wake() {
        var one: UInt64 = 1
        // If the counter is full the write fails, but the thread wakes as well.
        _ = write(wakeup, &one, 8)
    }

    private func run() {
        while true {
            switch step() {
            case .wait(let milliseconds): wait(milliseconds)
            case .settle(let stopping): settle(stopping)
            case .bury(let killed):
                core.configuration.beforeWaiting()
                for worker in killed { _ = worker.end() }
            case .start: start()
            case .end:
                for continuation in core.spareEnded() { continuation.resume() }
                return
            }
        }
    }

    private func step() -> Step {
        let delay = core.spareDelay()
        return state.withLock { state in
            if let stopping = state.stopping {
                state.stopping = nil
                return .settle(stopping)
            }
            if !state.killed.isEmpty {
                defer { state.killed = [] }
                return .bury(state.killed)
            }
            if state.isClosing {
                guard let ready = state.ready else { return .end }
                state.ready = nil
                return .bury([ready])
            }
            guard state.ready == nil, let delay else { return .wait(-1) }
            return delay > 0 ? .wait(Int32((delay * 1000).rounded(.up))) : .start
        }
    }

    private func settle(_ stopping: StoppingRender) {
        core.configuration.beforeWaiting()
        let worker = stopping.worker
        let isUsable = stopping.settle()
        state.withLock { state in
            if isUsable { state.ready = worker } else { state.killed.append(worker) }
        }
    }

    private func start() {
        do throws(RenderError) {
            let worker = try core.startWorker()
            state.withLock { $0.ready = worker }
        } catch {
            core.configuration.warn(error.message)
        }
    }

    /// Waits to be woken, or for the spare to end by itself.
    private func wait(_ milliseconds: Int32) {
        let worker = state.withLock { $0.ready }
        var watched = [
            pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0),
            pollfd(fd: worker?.requests ?? -1, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&watched, 2, milliseconds) > 0 else { return }
        if watched[0].revents != 0 {
            var count: UInt64 = 0
            _ = read(wakeup, &count, 8)
        }
        guard let worker, watched[1].revents != 0 else { return }
        // If a slot has taken the worker meanwhile, what it sent is for that slot.
        let isOurs = state.withLock { state in
            guard state.ready === worker else { return false }
            state.ready = nil
            return true
        }
        if isOurs { core.lost(worker) }
    }
}
