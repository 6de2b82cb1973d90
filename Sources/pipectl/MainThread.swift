import PipelineSupport
import Synchronization

/// Runs tasks on the main thread, one job after another, so that a command with a single task does not start the
/// threads of the cooperative pool and of libdispatch.
final class MainThread: TaskExecutor {
    /// The executor of the current command if the command runs on the main thread, or nil if it uses the cooperative
    /// pool.
    static var executor: (any TaskExecutor)? { current.withLock { $0 } }

    private static let current = Mutex<MainThread?>(nil)

    private let jobs = JobQueue()

    /// Blocks the calling thread until `work` has finished.
    ///
    /// - Parameter isAlone: Whether `work` runs on the calling thread rather than on the cooperative pool.
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
        // After `work` has finished, no caller waits for tasks that it started.
        _ = jobs.append { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
