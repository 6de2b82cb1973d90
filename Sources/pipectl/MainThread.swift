import PipelineSupport
import Synchronization

/// Runs tasks on the main thread, one job after another, so that a command that does one thing starts neither the
/// cooperative pool's threads nor those with which libdispatch manages them.
final class MainThread: TaskExecutor {
    /// The executor for tasks of such a command once it runs; nil for other commands, which use the cooperative pool.
    static var executor: (any TaskExecutor)? { current.withLock { $0 } }

    private static let current = Mutex<MainThread?>(nil)

    private let jobs = JobQueue()

    /// Blocks the calling thread until `work` has finished.
    ///
    /// - Parameter isAlone: whether `work` runs on the calling thread; otherwise it runs on the cooperative pool.
    static func run(isAlone: Bool, _ work: @escaping @Sendable () async -> Void) {
        let thread = MainThread()
        thread.jobs.opened()
        if isAlone { current.withLock { $0 = thread } }
        Task(executorPreference: isAlone ? thread : nil) {
            await work()
            thread.jobs.close()
        }
        thread.jobs.runAll()
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // After the end of `work`, nothing waits for what it left behind.
        _ = jobs.append { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
