import Glibc
import Synchronization

/// A few threads of our own for calls that block (SQLite, files), so that none runs on the cooperative pool.
///
/// Jobs run in the order given. `drain()` waits for all jobs given before it; `stop()` also ends the threads.
final class OwnedThreads: @unchecked Sendable {
    // @unchecked Sendable: `jobs`, `running` and `isStopping` are only touched with `mutex` held.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var jobs: [@Sendable () -> Void] = []
    private var head = 0
    private var running = 0
    private var isStopping = false
    private var threads: [pthread_t] = []

    init(count: Int) {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
        for _ in 0..<count {
            var thread = pthread_t()
            let context = Unmanaged.passRetained(self).toOpaque()
            let status = pthread_create(
                &thread, nil,
                { context in
                    Unmanaged<OwnedThreads>.fromOpaque(context!).takeRetainedValue().work()
                    return nil
                }, context)
            if status == 0 {
                threads.append(thread)
            } else {
                Unmanaged<OwnedThreads>.fromOpaque(context).release()
            }
        }
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_cond_destroy(changed)
        mutex.deallocate()
        changed.deallocate()
    }

    /// Runs `job` on one of the threads and returns what it returns.
    func run<Value: Sendable>(_ job: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            submit { continuation.resume(returning: job()) }
        }
    }

    /// Puts a job behind those waiting; once stopped (or without threads) it runs at once on the caller's thread.
    func submit(_ job: @escaping @Sendable () -> Void) {
        pthread_mutex_lock(mutex)
        let runsHere = isStopping || threads.isEmpty
        if !runsHere { jobs.append(job) }
        pthread_cond_broadcast(changed)
        pthread_mutex_unlock(mutex)
        if runsHere { job() }
    }

    /// Returns when no job is waiting or running.
    func drain() {
        pthread_mutex_lock(mutex)
        while head < jobs.count || running > 0 { pthread_cond_wait(changed, mutex) }
        pthread_mutex_unlock(mutex)
    }

    /// Drains, then ends and joins the threads.
    func stop() {
        drain()
        pthread_mutex_lock(mutex)
        isStopping = true
        let ended = threads
        threads = []
        pthread_cond_broadcast(changed)
        pthread_mutex_unlock(mutex)
        for thread in ended { pthread_join(thread, nil) }
    }

    private func work() {
        pthread_mutex_lock(mutex)
        while true {
            while head == jobs.count && !isStopping { pthread_cond_wait(changed, mutex) }
            guard head < jobs.count else { break }
            let job = jobs[head]
            head += 1
            if head == jobs.count {
                jobs.removeAll(keepingCapacity: true)
                head = 0
            } else if head > 1024 {
                jobs.removeFirst(head)
                head = 0
            }
            running += 1
            pthread_mutex_unlock(mutex)
            job()
            pthread_mutex_lock(mutex)
            running -= 1
            pthread_cond_broadcast(changed)
        }
        pthread_mutex_unlock(mutex)
    }
}
