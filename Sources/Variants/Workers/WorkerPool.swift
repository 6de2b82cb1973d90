import Glibc
import Synchronization

/// Renders in sandboxed child processes, with one thread here for each.
///
/// A render that crashes, hangs, takes too much memory or answers invalidly fails only its own request: the worker is
/// replaced, and the render is quarantined for a while. Workers start with the first renders that need them, ahead of
/// them with `startFirst()`, or at once if the configuration says so; they end with `shutdown()`, with the last
/// reference, and with this process.
public final class WorkerPool: Rendering {
    private let core: PoolCore

    /// Creates a pool that is idle until a render, `startFirst()` or `prepare()`, unless `isPrewarmed` is set.
    public init(_ configuration: WorkerConfiguration = WorkerConfiguration()) {
        core = PoolCore(configuration)
    }

    deinit { core.close() }

    public func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant {
        switch try await perform(job, .variant) {
        case .variant(let variant): return variant
        case .pixels: throw RenderError(.workerProtocol, "a render worker answered with pixels")
        }
    }

    public func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer {
        switch try await perform(job, .pixels) {
        case .pixels(let pixels): return pixels
        case .variant: throw RenderError(.workerProtocol, "a render worker answered with a file")
        }
    }

    private func perform(_ job: RenderJob, _ kind: WorkerRequest.Kind) async throws(RenderError) -> RenderedOutput {
        try job.checkLimits(memory: core.configuration.memory)
        let pending = PendingRender(id: core.newID(), kind: kind, job: job, priority: Task.currentPriority.rawValue)
        let outcome = await withTaskCancellationHandler {
            await withTaskPriorityEscalationHandler {
                // It may have been escalated since the render was made, or is from now on.
                pending.raise(to: Task.currentPriority.rawValue)
                return await withCheckedContinuation { continuation in
                    pending.attach(continuation)
                    core.submit(pending)
                }
            } onPriorityEscalated: { [core] _, priority in
                core.raise(pending, to: priority.rawValue)
            }
        } onCancel: {
            core.cancel(pending)
        }
        return try outcome.get()
    }

    /// Starts every worker, and returns when the first is ready, with the protections that are in force in it.
    ///
    /// - Throws: `workerUnavailable` or `libraryUnavailable` if it cannot be started; renders then try again.
    @discardableResult
    public func prepare() async throws(RenderError) -> WorkerProtection {
        try await withCheckedContinuation { continuation in core.prepare(continuation) }.get()
    }

    /// Starts a worker for a render that is to come, if there is none yet, and returns at once. If it cannot be
    /// started, that render reports the error.
    package func startFirst() { core.startFirst() }

    /// Bytes of memory that a worker may use.
    package var memory: Int { core.configuration.memory }

    /// The protections in force in the workers; nil until one has started.
    public var protection: WorkerProtection? { core.protection }

    package var libraries: RenderLibraries? { core.libraries }

    /// Starts a worker if none has started yet.
    package func loadLibraries() async -> RenderLibraries? {
        if let libraries { return libraries }
        // If none can be started, a render says why.
        _ = await withCheckedContinuation { continuation in core.awaitFirst(continuation) }
        return libraries
    }

    /// Warns if no worker could be started, where no render follows that would say so.
    package func warnOfRefusal() {
        if let refusal = core.startRefusal() { core.configuration.warn(refusal.message) }
    }

    /// Counts of what has happened to the workers so far.
    public var statistics: WorkerStatistics { core.statistics }

    /// Renders that a slot has taken and not finished.
    var running: Int { core.running }
    /// Renders that no slot has taken.
    var waiting: Int { core.waiting }
    /// Slots that do long renders.
    var long: Int { core.long }
    var hasSpare: Bool { core.hasSpare }

    /// Lets submitted renders finish, stops all workers, and returns when none remains.
    public func shutdown() async { await core.shutdown() }
}

/// Counts of what has happened to a pool's workers.
public struct WorkerStatistics: Sendable, Hashable {
    /// Workers that started and became ready.
    public var started = 0
    /// Workers that exited by themselves or were killed by a signal, in a render or while idle.
    public var crashed = 0
    /// Workers killed because a render did not stop when it was told to, or because they sent an invalid answer.
    public var killed = 0
    /// Workers replaced because they had reached their limit of renders or memory.
    public var recycled = 0
    /// Renders refused because the variant, or its original, is quarantined.
    public var refused = 0
    /// Renders that a worker took to make them from the decode of another one, which had waited at the same time.
    public var shared = 0
    package init() {}
}

enum RenderedOutput: Sendable {
    case variant(RenderedVariant)
    case pixels(PixelBuffer)
}

/// A submitted render, in the queue or with a worker.
final class PendingRender: GatheringRender, Sendable {
    typealias Outcome = Result<RenderedOutput, RenderError>

    let kind: WorkerRequest.Kind
    let shareable: ShareableDecode?
    /// The cost that was expected when the render was submitted.
    let estimate: RenderWork
    private let isFoundLong = Atomic(false)
    private let state: Mutex<State>

    private struct State {
        var id: UInt64
        var job: RenderJob
        var priority: UInt8
        var continuation: CheckedContinuation<Outcome, Never>?
        var isCancelled = false
    }

    init(id: UInt64, kind: WorkerRequest.Kind, job: RenderJob, priority: UInt8) {
        self.kind = kind
        // Decided here, since the pool compares what waits while it holds its lock.
        shareable = job.shareable
        estimate = RenderWork(job, kind)
        state = Mutex(State(id: id, job: job, priority: priority))
    }

    var id: UInt64 { state.withLock { $0.id } }

    /// The estimate. It counts as long after `countAsLong()`.
    var work: RenderWork {
        var work = estimate
        if isFoundLong.load(ordering: .relaxed) { work.isLong = true }
        return work
    }

    func countAsLong() { isFoundLong.store(true, ordering: .relaxed) }

    /// Prepares the render for the queue again, without a shared decode. The worker that stops still uses the old id.
    func wait(as id: UInt64) {
        state.withLock { state in
            state.id = id
            state.job.shared = nil
        }
    }

    var job: RenderJob { state.withLock { $0.job } }
    var priority: UInt8 { state.withLock { $0.priority } }

    /// Makes it at least this urgent, the next time it is queued.
    func raise(to priority: UInt8) { state.withLock { $0.priority = max($0.priority, priority) } }

    func share(_ decode: SharedDecode) { state.withLock { $0.job.shared = decode } }

    func attach(_ continuation: CheckedContinuation<Outcome, Never>) {
        state.withLock { $0.continuation = continuation }
    }

    func cancel() { state.withLock { $0.isCancelled = true } }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Resumes the waiting caller; only the first outcome counts.
    func finish(_ outcome: Outcome) {
        let continuation = state.withLock { state in
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume(returning: outcome)
    }

    static let cancelled = RenderError(.cancelled, "the render was cancelled")
    /// The render counts as long now, and has to wait until another long one ends.
    static let yields = RenderError(.cancelled, "the render waits until it may be long")
}
