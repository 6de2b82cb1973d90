import Glibc
import Synchronization

/// SIGINT and SIGTERM as an event: the first asks for a clean stop, the second ends the process.
enum Interruption {
    private static let handlers = Mutex<(next: Int, waiting: [Int: @Sendable () -> Void])>((0, [:]))
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

    /// Calls `handler` when a stop is asked for; at once if it has been. Gives what `remove` takes.
    @discardableResult
    static func onRequest(_ handler: @escaping @Sendable () -> Void) -> Int {
        let number = handlers.withLock { handlers in
            handlers.next += 1
            handlers.waiting[handlers.next] = handler
            return handlers.next
        }
        if isRequested { handler() }
        return number
    }

    /// Forgets a handler.
    static func remove(_ number: Int) {
        handlers.withLock { _ = $0.waiting.removeValue(forKey: number) }
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
            let waiting = handlers.withLock { Array($0.waiting.values) }
            for handler in waiting { handler() }
        }
    }
}
