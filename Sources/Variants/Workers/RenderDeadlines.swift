import Glibc
import PipelineSupport

/// A thread that stops renders when their deadlines pass.
// @unchecked Sendable: `running` and `isClosed` are accessed only while `mutex` is held.
final class RenderDeadlines: @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t> = .allocate(capacity: 1)
    private let condition: UnsafeMutablePointer<pthread_cond_t> = .allocate(capacity: 1)
    private var running: [ObjectIdentifier: (deadline: Double, control: RenderControl)] = [:]
    private var isClosed = false

    init() {
        mutex.initialize(to: pthread_mutex_t())
        condition.initialize(to: pthread_cond_t())
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
        // If the thread cannot be started, renders have no deadline.
        _ = startThread { self.run() }
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func add(_ control: RenderControl, seconds: Double) {
        pthread_mutex_lock(mutex)
        running[ObjectIdentifier(control)] = (SystemClock.monotonic.seconds + seconds, control)
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    func remove(_ control: RenderControl) {
        pthread_mutex_lock(mutex)
        running[ObjectIdentifier(control)] = nil
        pthread_mutex_unlock(mutex)
    }

    func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    private func run() {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while !(isClosed && running.isEmpty) {
            let now = SystemClock.monotonic.seconds
            for (key, entry) in running where entry.deadline <= now {
                running[key] = nil
                entry.control.stop(.deadline)
            }
            // Wait until the next deadline, but at most an hour, or a second if the thread is closing.
            let next = min(running.values.map(\.deadline).min() ?? .infinity, now + (isClosed ? 1 : 3600))
            var until = timespec()
            until.tv_sec = Int(next)
            until.tv_nsec = Int((next - Double(until.tv_sec)) * 1e9)
            pthread_cond_timedwait(condition, mutex, &until)
        }
    }
}
