import PipelineSupport
import Glibc
import Pipeline
import Synchronization

/// Converts signals into events. The first SIGINT or SIGTERM requests a clean stop, and the second terminates the
/// process. SIGHUP requests a reload in programs that support it.
enum Interruption {
    private static let handlers = Mutex<(next: Int, waiting: [(number: Int, call: @Sendable () -> Void)])>((0, []))
    private static let reloads = Mutex<(@Sendable () -> Void)?>(nil)
    private static let arrived = Atomic<Bool>(false)
    /// The ends of the pipe. They are plain memory, so a signal handler may read them, and are set before the handler
    /// and the thread exist.
    nonisolated(unsafe) private static var reader: Int32 = -1
    nonisolated(unsafe) private static var writer: Int32 = -1

    static var isRequested: Bool { arrived.load(ordering: .acquiring) }

    /// Starts catching the signals. Returns the error number if the system cannot start a thread, and 0 otherwise.
    ///
    /// The handler writes to a pipe that a thread reads. This works regardless of which thread receives the signal,
    /// including threads started by libraries.
    static func arm() -> Int32 {
        var ends: [Int32] = [-1, -1]
        // If there is no pipe, the signals keep their default action and terminate the process.
        guard pipe(&ends) == 0 else { return 0 }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (reader, writer) = (ends[0], ends[1])
        guard startThread({ wait() }) else { return errno }
        catchSignals([SIGINT, SIGTERM])
        return 0
    }

    /// Calls `handler` on each SIGHUP from now on. By default, SIGHUP terminates the process. If `handler` is nil,
    /// SIGHUP is ignored.
    static func onReload(_ handler: (@Sendable () -> Void)?) {
        reloads.withLock { $0 = handler }
        if writer >= 0 { catchSignals([SIGHUP]) }
    }

    private static func catchSignals(_ numbers: [Int32]) {
        var action = sigaction()
        action.__sigaction_handler = .init(sa_handler: { number in
            let saved = errno
            var byte = UInt8(truncatingIfNeeded: number)
            _ = write(Interruption.writer, &byte, 1)
            errno = saved
        })
        action.sa_flags = SA_RESTART
        // A parent process may have blocked the signals, and a child process inherits the signal mask.
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in numbers {
            sigaction(number, &action, nil)
            sigaddset(&signals, number)
        }
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Calls `handler` when a stop is requested, or immediately if a stop has already been requested. Returns the
    /// number to pass to `remove`.
    @discardableResult
    static func onRequest(_ handler: @escaping @Sendable () -> Void) -> Int {
        let number = handlers.withLock { handlers in
            handlers.next += 1
            handlers.waiting.append((handlers.next, handler))
            return handlers.next
        }
        if isRequested { handler() }
        return number
    }

    static func remove(_ number: Int) {
        handlers.withLock { $0.waiting.removeAll { $0.number == number } }
    }

    /// Runs `work` and returns its result. A stop request cancels `work`.
    static func cancelling<Value: Sendable>(
        _ work: @escaping @Sendable () async throws(PipelineError) -> Value
    ) async throws(PipelineError) -> Value {
        let task = Task(executorPreference: MainThread.executor) { await Result(of: work) }
        let handler = onRequest { task.cancel() }
        defer { remove(handler) }
        return try await task.value.get()
    }

    private static func wait() {
        var byte: UInt8 = 0
        while uninterrupted({ read(reader, &byte, 1) }) == 1 {
            if byte == UInt8(SIGHUP) {
                reloads.withLock { $0 }?()
                continue
            }
            if arrived.exchange(true, ordering: .acquiringAndReleasing) { _exit(ProgramExit.interrupted.rawValue) }
            let waiting = handlers.withLock { $0.waiting.map(\.call) }
            for handler in waiting { handler() }
        }
    }
}
