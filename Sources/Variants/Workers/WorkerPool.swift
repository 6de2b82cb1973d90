import Glibc
import Synchronization

/// Renders in child processes that are locked down, one thread here for each.
///
/// A render that crashes, hangs, takes too much memory or answers nonsense costs its own request: the worker is replaced,
/// and what crashed it is quarantined for a while. Workers start with the first renders that need them, ahead of
/// them with `startFirst()`, or at once where the configuration says so, and end with `shutdown()`, with the last
/// reference, and with this process.
public final class WorkerPool: Rendering {
    private let core: PoolCore

    /// A pool that is idle; nothing is started before it is needed, or `startFirst()` or `prepare()` is called.
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
        try job.checkLimits()
        let pending = PendingRender(id: core.newID(), kind: kind, job: job, priority: Task.currentPriority.rawValue)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                pending.attach(continuation)
                core.submit(pending)
            }
        } onCancel: {
            core.cancel(pending)
        }
        return try outcome.get()
    }

    /// Starts every worker, and returns when the first is ready: what it is locked down by.
    ///
    /// Throws `workerUnavailable` or `libraryUnavailable` where it cannot be started; renders then try again.
    @discardableResult
    public func prepare() async throws(RenderError) -> WorkerProtection {
        try await withCheckedContinuation { continuation in core.prepare(continuation) }.get()
    }

    /// Starts a worker where there is none yet, for a render that is to come, and returns at once. Where it cannot be
    /// started, that render is told.
    public func startFirst() { core.startFirst() }

    /// What the workers are locked down by, once one has started.
    public var protection: WorkerProtection? { core.protection }

    /// What has become of workers so far.
    public var statistics: WorkerStatistics { core.statistics }

    /// Renders that a thread has taken and not finished.
    var running: Int { core.running }
    /// Renders that no thread has taken.
    var waiting: Int { core.waiting }
    /// Whether the worker beside the slots may be taken.
    var hasSpare: Bool { core.hasSpare }

    /// Lets what was given finish, ends all workers, and returns when none is left.
    public func shutdown() async { await core.shutdown() }
}

/// What has become of a pool's workers.
public struct WorkerStatistics: Sendable, Hashable {
    /// Started and ready.
    public var started = 0
    /// Ended by themselves or by a signal, in a render or without one.
    public var crashed = 0
    /// Killed because a render did not stop when it was told to, or because they answered nonsense.
    public var killed = 0
    /// Replaced after their share of renders or memory.
    public var recycled = 0
    /// Renders refused because the variant, or its original, is quarantined.
    public var refused = 0
    public init() {}
}

/// A picture as a worker gives it.
enum RenderedOutput: Sendable {
    case variant(RenderedVariant)
    case pixels(PixelBuffer)
}

/// A render on its way: in the queue, or with a worker.
final class PendingRender: Sendable {
    typealias Outcome = Result<RenderedOutput, RenderError>

    let id: UInt64
    let kind: WorkerRequest.Kind
    let job: RenderJob
    let priority: UInt8
    private let state = Mutex<(continuation: CheckedContinuation<Outcome, Never>?, isCancelled: Bool)>((nil, false))

    init(id: UInt64, kind: WorkerRequest.Kind, job: RenderJob, priority: UInt8) {
        self.id = id
        self.kind = kind
        self.job = job
        self.priority = priority
    }

    func attach(_ continuation: CheckedContinuation<Outcome, Never>) {
        state.withLock { $0.continuation = continuation }
    }

    func cancel() { state.withLock { $0.isCancelled = true } }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Answers whoever waits; only the first answer counts.
    func finish(_ outcome: Outcome) {
        let continuation = state.withLock { state in
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume(returning: outcome)
    }

    static let cancelled = RenderError(.cancelled, "the render was cancelled")
}
