import Glibc
import Synchronization

/// Renders in sandboxed child processes. Use a pool for pictures from untrusted sources if the program needs no
/// pipeline. A pipeline creates its own pool (`RenderIsolation.workers`).
///
/// ```swift
/// func thumbnail(of upload: [UInt8]) async throws -> [UInt8] {
///     let pool = WorkerPool()
///     let job = RenderJob(original: upload, header: try ImageHeader.probe(upload), recipe: .thumbnail(300).webp())
///     let variant = try await pool.render(job)
///     await pool.shutdown()
///     return variant.bytes
/// }
/// ```
///
/// Each worker process has a corresponding thread in this process. A render that crashes, hangs, uses too much memory
/// or sends an invalid reply fails only its own request. The worker is then replaced, and the render is quarantined for
/// some time. Workers start with the first renders that need them. They start earlier with `prepare()`, or immediately
/// if `isPrewarmed` is set. Workers stop with `shutdown()`, when the last reference to the pool is released, and when
/// this process ends.
public final class WorkerPool: Rendering {
    private let core: PoolCore

    /// Creates a pool. It starts no workers before the first render or `prepare()`, unless `isPrewarmed` is set.
    public init(_ configuration: WorkerConfiguration = WorkerConfiguration()) {
        core = PoolCore(configuration) { WorkerSlot(index: $0, core: $1) }
    }

    deinit { core.close() }

    /// Renders a job and returns the encoded picture. Cancelling the calling task stops the render.
    public func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant {
        try job.checkLimits(memory: memory)
        return try await core.variant(of: job)
    }

    /// Applies the steps of the job's recipe and returns the decoded pixels for display. Ignores the recipe's output.
    public func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer {
        let job = job.inPixels
        try job.checkLimits(memory: memory)
        return try await core.pixels(of: job)
    }

    /// Starts all workers, and returns when the first worker is ready.
    ///
    /// - Returns: the protections, such as Landlock, that are not available in this kernel or environment. The array is
    ///   empty if all protections are in force.
    /// - Throws: `workerUnavailable` or `libraryUnavailable` if the first worker cannot be started. Later renders try
    ///   again.
    @discardableResult
    public func prepare() async throws(RenderError) -> [String] {
        try await withCheckedContinuation { continuation in core.prepare(continuation) }.get().missing
    }

    /// Starts a worker for a later render if no worker is running, and returns immediately. If the worker cannot be
    /// started, that render reports the error.
    package func startFirst() { core.startFirst() }

    /// The number of bytes of memory that a worker may use.
    package var memory: Int { core.configuration.memory }

    /// The protections in force in the workers, or nil if no worker has started yet.
    package var protection: WorkerProtection? { core.protection }

    package var libraries: RenderLibraries? { core.libraries }

    /// Starts a worker if none has been started yet.
    package func loadLibraries() async -> RenderLibraries? {
        if let libraries { return libraries }
        // If no worker can be started, a later render reports the reason.
        _ = await withCheckedContinuation { continuation in core.awaitFirst(continuation) }
        return libraries
    }

    /// Logs a warning if no worker could be started. Call this if no later render would report the error.
    package func warnOfRefusal() {
        if let refusal = core.startRefusal() { core.configuration.warn(refusal.message) }
    }

    /// The counts of events in the pool so far.
    public var statistics: WorkerStatistics { core.statistics }

    /// The number of renders that a slot has started but not finished.
    var running: Int { core.running }
    /// The number of renders that no slot has started.
    var waiting: Int { core.waiting }
    /// The number of slots with long renders.
    var long: Int { core.long }

    /// Waits for submitted renders to finish, stops all workers, and returns when all workers have ended.
    public func shutdown() async { await core.shutdown() }
}

/// Counts the workers that a pool started, lost and replaced. Read it from `ImagePipeline.workerStatistics` or
/// `WorkerPool.statistics`.
public struct WorkerStatistics: Sendable, Hashable {
    /// The number of workers that started and became ready.
    public var started = 0
    /// The number of workers that exited or were killed by a signal, during a render or while idle.
    public var crashed = 0
    /// The number of workers that were killed because a render did not stop when requested, or because they sent an
    /// invalid reply.
    public var killed = 0
    /// The number of workers that were replaced because they reached their limit of renders or memory.
    public var recycled = 0
    /// The number of renders that were refused because the variant or its original is quarantined.
    public var refused = 0
    /// The number of renders that used the decode of another render that was waiting at the same time.
    public var shared = 0
    package init() {}
}

enum RenderedOutput: Sendable {
    case variant(RenderedVariant)
    case pixels(PixelBuffer)
}

/// A submitted render, either in the queue or running in a worker.
final class PendingRender: GatheringRender, Sendable {
    typealias Outcome = Result<RenderedOutput, RenderError>

    let kind: WorkerRequest.Kind
    let shareable: ShareableDecode?
    /// The expected cost at the time of submission.
    let estimate: RenderWork
    private let isFoundLong = Atomic(false)
    private let state: Mutex<State>

    private struct State {
        var id: UInt64
        var job: RenderJob
        var priority: UInt8
        var continuation: CheckedContinuation<Outcome, Never>?
        /// The control of a render that runs in this process.
        var control: RenderControl?
        var isCancelled = false
    }

    init(id: UInt64, kind: WorkerRequest.Kind, job: RenderJob, priority: UInt8) {
        self.kind = kind
        // This is computed here because the pool compares waiting renders while it holds its lock.
        shareable = job.shareable
        estimate = RenderWork(job, kind)
        state = Mutex(State(id: id, job: job, priority: priority))
    }

    var id: UInt64 { state.withLock { $0.id } }

    /// The estimate, which is marked as long after a call of `countAsLong()`.
    var work: RenderWork {
        var work = estimate
        if isFoundLong.load(ordering: .relaxed) { work.isLong = true }
        return work
    }

    func countAsLong() { isFoundLong.store(true, ordering: .relaxed) }

    /// Prepares the render to be queued again with a new ID and without a shared decode. The new ID is needed because
    /// the worker that is stopping still uses the old one.
    func wait(as id: UInt64) {
        state.withLock { state in
            state.id = id
            state.job.shared = nil
        }
    }

    var job: RenderJob { state.withLock { $0.job } }
    var priority: UInt8 { state.withLock { $0.priority } }

    /// Raises the priority to at least `priority` the next time that the render is queued.
    func raise(to priority: UInt8) { state.withLock { $0.priority = max($0.priority, priority) } }

    func share(_ decode: SharedDecode) { state.withLock { $0.job.shared = decode } }

    func attach(_ continuation: CheckedContinuation<Outcome, Never>) {
        state.withLock { $0.continuation = continuation }
    }

    /// Sets the control that stops the render when it is cancelled.
    func began(_ control: RenderControl) {
        let isCancelled = state.withLock { state in
            state.control = control
            return state.isCancelled
        }
        if isCancelled { control.stop(.cancelled) }
    }

    func cancel() {
        let control = state.withLock { state in
            state.isCancelled = true
            return state.control
        }
        control?.stop(.cancelled)
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Resumes the waiting caller. Later outcomes are ignored.
    func finish(_ outcome: Outcome) {
        let continuation = state.withLock { state in
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume(returning: outcome)
    }

    static let cancelled = RenderError(.cancelled, "the render was cancelled")
    /// The error of a render that is now treated as long and must wait until another long render ends.
    static let yieldError = RenderError(.cancelled, "the render is waiting until a long render may begin")
}
