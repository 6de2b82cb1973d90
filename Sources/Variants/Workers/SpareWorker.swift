import CSandbox
import Glibc
import Synchronization

/// A thread that keeps one worker ready beside those of the slots, and waits for those that a slot has no time for: one
/// whose render was cancelled, until it has stopped and is ready again or has to be killed, and killed ones until they end.
///
/// To stop takes some milliseconds, the end of a killed worker more, as the kernel takes back its memory, and the start of
/// another one more still; a slot that gets the one that is ready waits for none of that. There is at most one process
/// more than slots: a worker that is given away is not followed by another before the one in whose place it came is gone.
// @unchecked Sendable: all that changes is under the lock; the descriptor stays open as long as anybody has this.
final class SpareWorker: @unchecked Sendable {
    private struct State {
        var ready: WorkerProcess?
        var stopping: StoppingRender?
        /// Killed, and not waited for yet.
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

    /// Starts the thread; nil where the system has none to give. Nothing else is started before a slot's worker is ready.
    init?(core: PoolCore) {
        self.core = core
        wakeup = csandbox_wakeup()
        if wakeup < 0 { return nil }
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self)
        let status = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<SpareWorker>.fromOpaque(context).takeRetainedValue().run() }
                return nil
            }, context.toOpaque())
        guard status == 0 else {
            context.release()
            return nil
        }
        pthread_detach(thread)
    }

    deinit { if wakeup >= 0 { close(wakeup) } }

    /// What a slot gives away for the worker that is ready.
    enum Exchanged {
        case nothing
        case killed(WorkerProcess)
        case stopping(StoppingRender)
    }

    /// The worker that is ready, if there is one: the caller's from now on.
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

    /// Ends the worker that is ready, and then the thread. No slot may be left: the workers it started end with it.
    func end() {
        state.withLock { $0.isClosing = true }
        wake()
    }

    /// Makes the thread look again.
    func wake() {
        var one: UInt64 = 1
        // A counter that is full wakes as well.
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

    /// Waits to be woken, or for the worker that is ready to end by itself.
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
        // Where a slot has taken it meanwhile, it is the slot it speaks to.
        let isOurs = state.withLock { state in
            guard state.ready === worker else { return false }
            state.ready = nil
            return true
        }
        if isOurs { core.lost(worker) }
    }
}
