import Glibc
import PipelineSupport
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
/// `@unchecked Sendable`: the semaphore's address never changes, and semaphores are made for several threads.
private final class Jobs: @unchecked Sendable {
    private let waiting = Mutex<[UnownedJob]>([])
    /// Counts the waiting jobs, and one more once the queue is closed.
    private let arrivals = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(arrivals, 0, 0) }

    deinit {
        sem_destroy(arrivals)
        arrivals.deallocate()
    }

    func append(_ job: UnownedJob) {
        waiting.withLock { $0.append(job) }
        sem_post(arrivals)
    }

    func close() { sem_post(arrivals) }

    /// Waits for the next job; returns nil once the queue is closed and empty.
    func next() -> UnownedJob? {
        _ = uninterrupted { sem_wait(arrivals) }
        return waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }
}
