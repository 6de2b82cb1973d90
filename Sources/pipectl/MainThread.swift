import Glibc
import Synchronization

/// Runs tasks on the main thread, one job after another, so that a command that does one thing starts neither the
/// cooperative pool's threads nor those with which libdispatch manages them.
final class MainThread: TaskExecutor {
    /// The executor for tasks of such a command once it runs; nil for other commands, which use the cooperative pool.
    static var executor: (any TaskExecutor)? { current.withLock { $0 } }

    private static let current = Mutex<MainThread?>(nil)

    private let jobs = Jobs()

    /// Blocks the calling thread until `work` has finished.
    ///
    /// - Parameter isAlone: whether `work` runs on the calling thread; otherwise it runs on the cooperative pool.
    static func run(isAlone: Bool, _ work: @escaping @Sendable () async -> Void) {
        let thread = MainThread()
        if isAlone { current.withLock { $0 = thread } }
        Task(executorPreference: isAlone ? thread : nil) {
            await work()
            thread.jobs.close()
        }
        while let job = thread.jobs.next() { job.runSynchronously(on: thread.asUnownedTaskExecutor()) }
    }

    func enqueue(_ job: consuming ExecutorJob) { jobs.append(UnownedJob(job)) }
}

/// A queue of jobs, first in, first out.
///
/// `@unchecked Sendable`: mutable state is accessed only with `mutex` held.
private final class Jobs: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var waiting: [UnownedJob] = []
    private var isClosed = false

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    func append(_ job: UnownedJob) {
        locked {
            waiting.append(job)
            pthread_cond_signal(changed)
        }
    }

    func close() {
        locked {
            isClosed = true
            pthread_cond_signal(changed)
        }
    }

    /// Waits for the next job; returns nil once the queue is closed and empty.
    func next() -> UnownedJob? {
        locked {
            while waiting.isEmpty {
                if isClosed { return nil }
                pthread_cond_wait(changed, mutex)
            }
            return waiting.removeFirst()
        }
    }

    private func locked<Value>(_ body: () -> Value) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
