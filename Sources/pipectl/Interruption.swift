import Glibc
import Synchronization

/// SIGINT and SIGTERM as an event: the first asks for a clean stop, the second ends the process.
enum Interruption {
    private static let handlers = Mutex<[@Sendable () -> Void]>([])
    private static let arrived = Atomic<Bool>(false)

    /// Whether a stop was asked for.
    static var isRequested: Bool { arrived.load(ordering: .acquiring) }

    /// Blocks the signals in this thread, and so in all it starts, and waits for them on a thread of its own.
    static func arm() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { _ in
                Interruption.wait()
                return nil
            }, nil)
    }

    /// Calls `handler` when a stop is asked for; at once if it has been.
    static func onRequest(_ handler: @escaping @Sendable () -> Void) {
        handlers.withLock { $0.append(handler) }
        if isRequested { handler() }
    }

    private static func wait() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        while true {
            var number: Int32 = 0
            guard sigwait(&signals, &number) == 0 else { continue }
            if arrived.exchange(true, ordering: .acquiringAndReleasing) { _exit(ProgramExit.interrupted.rawValue) }
            let waiting = handlers.withLock { $0 }
            for handler in waiting { handler() }
        }
    }
}
