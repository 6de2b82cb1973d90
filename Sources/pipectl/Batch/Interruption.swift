import Glibc
import Synchronization

/// SIGINT and SIGTERM as a flag: what runs is finished, nothing new is begun. A second signal ends the program at once.
enum Interruption {
    private static let flag = Atomic<Bool>(false)

    /// Whether a signal has come.
    static var hasHappened: Bool { flag.load(ordering: .relaxed) }

    /// Catches the signals from here on.
    static func install() {
        // The flag is a lazy global: initialise it here, since a handler must not.
        flag.store(false, ordering: .relaxed)
        for number in [SIGINT, SIGTERM] {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { _ in Interruption.happen() }
            sigemptyset(&action.sa_mask)
            sigaction(number, &action, nil)
        }
    }

    private static func happen() {
        if flag.exchange(true, ordering: .relaxed) { _exit(130) }
    }
}
