import Glibc
import Synchronization

/// SIGINT and SIGTERM as an event: the first asks for a clean stop, the second ends the process.
enum Interruption {
    private static let handlers = Mutex<(next: Int, waiting: [(number: Int, call: @Sendable () -> Void)])>((0, []))
    private static let arrived = Atomic<Bool>(false)
    /// Ends of the pipe. Plain memory, which a signal handler may read; set before there is a handler or a thread.
    nonisolated(unsafe) private static var reader: Int32 = -1
    nonisolated(unsafe) private static var writer: Int32 = -1

    /// Whether a stop was asked for.
    static var isRequested: Bool { arrived.load(ordering: .acquiring) }

    /// Catches the signals from here on.
    ///
    /// A handler that writes to a pipe, and a thread that reads it: whichever thread lets the signal through, libraries'
    /// own ones among them.
    static func arm() {
        var ends: [Int32] = [-1, -1]
        // Without a pipe the signals end the process, as they would have anyway.
        guard pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (reader, writer) = (ends[0], ends[1])
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { _ in
                Interruption.wait()
                return nil
            }, nil)
        guard status == 0 else { return }
        pthread_detach(thread)
        var action = sigaction()
        action.__sigaction_handler = .init(sa_handler: { _ in
            let saved = errno
            var byte: UInt8 = 0
            _ = write(Interruption.writer, &byte, 1)
            errno = saved
        })
        action.sa_flags = SA_RESTART
        // Whoever started this may have had them blocked, which is handed on.
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM] {
            sigaction(signal, &action, nil)
            sigaddset(&signals, signal)
        }
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Calls `handler` when a stop is asked for; at once if it has been. Gives what `remove` takes.
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

    /// Forgets a handler.
    static func remove(_ number: Int) {
        handlers.withLock { $0.waiting.removeAll { $0.number == number } }
    }

    private static func wait() {
        var byte: UInt8 = 0
        while true {
            let count = read(reader, &byte, 1)
            guard count == 1 else {
                if count < 0, errno == EINTR { continue }
                return
            }
            if arrived.exchange(true, ordering: .acquiringAndReleasing) { _exit(ProgramExit.interrupted.rawValue) }
            let waiting = handlers.withLock { $0.waiting.map(\.call) }
            for handler in waiting { handler() }
        }
    }
}
