import PipelineSupport
import Glibc
import Synchronization
import Variants

/// Calls back when the kernel reports that work stalls for lack of memory (pressure stall information, Linux 4.20;
/// Documentation/accounting/psi.rst). A separate thread waits for the reports.
final class MemoryPressure: Sendable {
    private let thread = OwnedThreads(count: 1)
    /// The write end of a pipe that the watching thread polls. Closing it stops the thread.
    private let wake: CInt
    private let isStopped = Atomic<Bool>(false)

    /// A stall of 150 ms within 2 s. A window of this length needs no privilege (Linux 6.5).
    private static let trigger = "some 150000 2000000"
    /// The pause after a call in milliseconds, so that the freed memory can take effect.
    private static let pause: CInt = 2_000

    /// Opens the first of these files that accepts a trigger. Returns -1 if none does, because the kernel is too old or
    /// does not permit it.
    static func opened(_ paths: [String]) -> CInt {
        for path in paths {
            let file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
            guard file >= 0 else { continue }
            // Includes the terminating NUL, like the kernel's own example.
            if Self.trigger.withCString({ write(file, $0, Self.trigger.utf8.count + 1) }) > 0 { return file }
            close(file)
        }
        return -1
    }

    /// Polls a descriptor for `POLLPRI`, and closes it when the watch stops. Returns nil if the descriptor is negative
    /// or no pipe can be created.
    ///
    /// - Parameter onPressure: a closure that is called on the watching thread, at most every two seconds.
    init?(_ file: CInt, onPressure: @escaping @Sendable () -> Void) {
        var ends: [CInt] = [-1, -1]
        guard file >= 0 else { return nil }
        guard pipe(&ends) == 0 else {
            close(file)
            return nil
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        wake = ends[1]
        let woken = ends[0]
        thread.submit {
            defer {
                close(file)
                close(woken)
            }
            var watched = [
                pollfd(fd: file, events: Int16(POLLPRI), revents: 0),
                pollfd(fd: woken, events: Int16(POLLIN), revents: 0),
            ]
            while true {
                let count = uninterrupted { poll(&watched, 2, -1) }
                // `POLLERR` means that the cgroup, and with it the trigger, has been removed.
                guard count > 0, watched[1].revents == 0, watched[0].revents & Int16(POLLERR) == 0 else { return }
                onPressure()
                var stop = pollfd(fd: woken, events: Int16(POLLIN), revents: 0)
                if poll(&stop, 1, Self.pause) > 0 { return }
            }
        }
    }

    deinit { end() }

    /// Stops the watch and its thread.
    func stop() {
        end()
        thread.stop()
    }

    private func end() {
        if !isStopped.exchange(true, ordering: .acquiringAndReleasing) { close(wake) }
    }
}
