import PipelineSupport
import CSandbox
import Glibc
import Synchronization

/// The state that the threads of a pool share: the queue, and information about the workers.
final class PoolCore: Sendable {
    enum Step {
        case render(PendingRender)
        /// Start a worker before a render needs it. If a caller is waiting for this worker, that caller reports a
        /// failed start.
        case start(isAwaited: Bool)
        /// Wait to be woken, for at most this many milliseconds. -1 means no timeout.
        case wait(Int32)
        case end
    }

    private struct Slot {
        let slot: any RenderSlot
        var isIdle = false
        var hasWorker = false
        var running: UInt64?
        /// Whether the running render is long, either alone or in total with the renders that share its decode.
        var isLong = false
        /// The renders that share the decode of the slot's last render. They run next, on the same worker.
        var gathered = UrgencyQueue<PendingRender>(oldestEvery: 4)
    }

    private struct State {
        var queue = RenderQueue<PendingRender>()
        /// The slots with running threads, indexed by slot number, starting at 0.
        var slots: [Int: Slot] = [:]
        var lastSlot = -1
        var lastID: UInt64 = 0
        var keepsWorkers: Bool
        /// Whether the next idle thread should start a worker.
        var awaitsFirst = false
        var isClosing = false
        var backoff = StartBackoff()
        var quarantine = Quarantine()
        var costs = RenderCosts()
        var protection: WorkerProtection?
        /// The libraries of the worker that started last.
        var libraries: RenderLibraries?
        var statistics = WorkerStatistics()
        var awaitingStart: [CheckedContinuation<Result<WorkerProtection, RenderError>, Never>] = []
        var awaitingEnd: [CheckedContinuation<Void, Never>] = []

        /// The number of slots with long renders.
        var long: Int { slots.values.count { $0.isLong } }
    }

    let configuration: WorkerConfiguration
    private let count: Int
    /// The maximum number of slots with long renders. If there are at least two slots, one is reserved for short
    /// renders.
    private let longLimit: Int
    private let makeSlot: @Sendable (Int, PoolCore) -> (any RenderSlot)?
    private let state: Mutex<State>

    /// - Parameter makeSlot: creates the slot with the given number. Returns nil if the system lacks the required
    ///   resources.
    init(_ configuration: WorkerConfiguration, makeSlot: @escaping @Sendable (Int, PoolCore) -> (any RenderSlot)?) {
        self.configuration = configuration
        self.makeSlot = makeSlot
        count = max(1, configuration.maxConcurrentRenders ?? Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) + 1)
        longLimit = configuration.longRenders ?? max(1, count - 1)
        state = Mutex(State(keepsWorkers: configuration.isPrewarmed))
        if configuration.isPrewarmed { startAll() }
    }

    // MARK: Calls from clients

    func variant(of job: RenderJob) async throws(RenderError) -> RenderedVariant {
        if case .variant(let variant) = try await perform(job, .variant) { return variant }
        throw RenderError(.workerProtocol, "a render worker answered with pixels")
    }

    func pixels(of job: RenderJob) async throws(RenderError) -> PixelBuffer {
        if case .pixels(let pixels) = try await perform(job, .pixels) { return pixels }
        throw RenderError(.workerProtocol, "a render worker answered with a file")
    }

    /// Renders a job in a slot. Cancelling the calling task stops the render.
    private func perform(_ job: RenderJob, _ kind: WorkerRequest.Kind) async throws(RenderError) -> RenderedOutput {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let pending = PendingRender(id: id, kind: kind, job: job, priority: Task.currentPriority.rawValue)
        let outcome = await withTaskCancellationHandler {
            await withTaskPriorityEscalationHandler {
                // The task's priority may have been escalated since the render was created, or may be escalated from
                // now on.
                pending.raise(to: Task.currentPriority.rawValue)
                return await withCheckedContinuation { continuation in
                    pending.attach(continuation)
                    submit(pending)
                }
            } onPriorityEscalated: { _, priority in
                raise(pending, to: priority.rawValue)
            }
        } onCancel: {
            cancel(pending)
        }
        return try outcome.get()
    }

    private func submit(_ pending: PendingRender) {
        let refusal = state.withLock { state -> RenderError? in
            if pending.isCancelled { return PendingRender.cancelled }
            if state.isClosing { return Self.closed }
            state.queue.push(pending, id: pending.id, priority: pending.priority, state.costs)
            offer(&state)
            guard !state.slots.isEmpty else {
                _ = state.queue.remove(id: pending.id)
                return RenderError(
                    .workerUnavailable,
                    "nothing can be rendered, because the system cannot create a thread or a file descriptor; raise `ulimit -u` and `ulimit -n`"
                )
            }
            return nil
        }
        if let refusal { pending.finish(.failure(refusal)) }
    }

    /// Lets a slot process the queue. Prefers an idle slot and otherwise adds a slot.
    private func offer(_ state: inout State) {
        guard !state.queue.isEmpty, !Self.wakeIdle(&state) else { return }
        if state.slots.count < count { addSlot(&state) }
    }

    private static func wakeIdle(_ state: inout State) -> Bool {
        // Prefer a slot that already has a worker.
        let idle = state.slots.filter { $0.value.isIdle }
        guard let (index, chosen) = idle.first(where: { $0.value.hasWorker }) ?? idle.first else { return false }
        state.slots[index]?.isIdle = false
        chosen.slot.wake()
        return true
    }

    /// Removes a render from the queue, or asks its worker to stop it.
    private func cancel(_ pending: PendingRender) {
        pending.cancel()
        let waiting = state.withLock { state -> PendingRender? in
            if let waiting = state.queue.remove(id: pending.id) { return waiting }
            for index in state.slots.keys {
                if let waiting = state.slots[index]?.gathered.remove(id: pending.id) { return waiting }
            }
            state.slots.values.first { $0.running == pending.id }?.slot.wake()
            return nil
        }
        waiting?.finish(.failure(PendingRender.cancelled))
    }

    /// Raises the priority of a waiting render to at least `priority`.
    private func raise(_ pending: PendingRender, to priority: UInt8) {
        pending.raise(to: priority)
        state.withLock { state in
            if state.queue.raise(id: pending.id, to: priority) { return }
            for index in state.slots.keys where state.slots[index]?.gathered.raise(id: pending.id, to: priority) == true
            {
                return
            }
        }
    }

    func prepare(_ continuation: CheckedContinuation<Result<WorkerProtection, RenderError>, Never>) {
        let known = state.withLock { state -> Result<WorkerProtection, RenderError>? in
            if state.isClosing { return .failure(Self.closed) }
            state.keepsWorkers = true
            if let protection = state.protection { return .success(protection) }
            state.awaitingStart.append(continuation)
            return nil
        }
        startAll()
        if let known { continuation.resume(returning: known) }
    }

    /// Starts a worker if none has been started yet. Resumes the continuation when a worker has started or cannot be
    /// started.
    func awaitFirst(_ continuation: CheckedContinuation<Result<WorkerProtection, RenderError>, Never>) {
        let known = state.withLock { state -> Result<WorkerProtection, RenderError>? in
            if let protection = state.protection { return .success(protection) }
            if let reason = Self.refusal(state) { return .failure(reason) }
            if state.isClosing { return .failure(Self.closed) }
            state.awaitsFirst = true
            if !Self.wakeIdle(&state), state.slots.isEmpty, !addSlot(&state) {
                state.awaitsFirst = false
                return .failure(
                    RenderError(
                        .workerUnavailable,
                        "the system cannot create a thread; raise the limit of processes (`ulimit -u`)"))
            }
            state.awaitingStart.append(continuation)
            return nil
        }
        if let known { continuation.resume(returning: known) }
    }

    func startFirst() {
        state.withLock { state in
            guard !state.isClosing, state.slots.isEmpty else { return }
            state.awaitsFirst = addSlot(&state)
        }
    }

    /// Starts all threads, which then start their workers, and wakes threads without a worker.
    private func startAll() {
        state.withLock { state in
            while !state.isClosing, state.slots.count < count, addSlot(&state) {}
            for slot in state.slots.values where slot.isIdle && !slot.hasWorker { slot.slot.wake() }
        }
    }

    /// Adds a thread. Returns false if the system cannot create a thread.
    @discardableResult
    private func addSlot(_ state: inout State) -> Bool {
        guard let slot = makeSlot(state.lastSlot + 1, self), slot.start() else { return false }
        state.lastSlot += 1
        state.slots[state.lastSlot] = Slot(slot: slot)
        return true
    }

    var protection: WorkerProtection? { state.withLock { $0.protection } }
    var libraries: RenderLibraries? { state.withLock { $0.libraries } }
    var long: Int { state.withLock { $0.long } }
    var running: Int { state.withLock { $0.slots.values.count { $0.running != nil } } }
    var waiting: Int {
        state.withLock { state in
            state.slots.values.reduce(state.queue.count) { $0 + $1.gathered.count }
        }
    }
    var statistics: WorkerStatistics { state.withLock { $0.statistics } }

    /// Stops the threads and their workers after all waiting renders have finished.
    func close() {
        let waiting = state.withLock { state in
            state.isClosing = true
            for slot in state.slots.values { slot.slot.wake() }
            defer { state.awaitingStart = [] }
            return state.awaitingStart
        }
        for continuation in waiting { continuation.resume(returning: .failure(Self.closed)) }
    }

    private static let closed = RenderError(.workerUnavailable, "the render workers have been shut down")

    func shutdown() async {
        close()
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if !state.slots.isEmpty { state.awaitingEnd.append(continuation) }
                return state.slots.isEmpty
            }
            if isDone { continuation.resume() }
        }
    }

    // MARK: Calls from slots

    func next(_ index: Int, hasWorker: Bool) -> Step {
        state.withLock { state in
            state.slots[index]?.running = nil
            state.slots[index]?.hasWorker = hasWorker
            if let pending = take(&state, index) {
                state.slots[index]?.isIdle = false
                state.slots[index]?.running = pending.id
                // If the last render was long, or its cost changed the estimates, a different slot may begin a long
                // render now.
                offer(&state)
                return .render(pending)
            }
            state.slots[index]?.isIdle = true
            if state.isClosing { return .end }
            let isFirst = state.awaitsFirst
            state.awaitsFirst = false
            guard state.keepsWorkers || isFirst, !hasWorker else { return .wait(-1) }
            let delay = state.backoff.delay(now: SystemClock.monotonic.seconds)
            return delay > 0 ? .wait(Int32((delay * 1000).rounded(.up))) : .start(isAwaited: !state.keepsWorkers)
        }
    }

    /// Returns the next render for a slot. This is a render that shares the decode of the slot's last render, or
    /// otherwise the next render in the queue together with the renders that share its decode.
    private func take(_ state: inout State, _ index: Int) -> PendingRender? {
        if let next = state.slots[index]?.gathered.pop() {
            state.statistics.shared += 1
            return next
        }
        state.slots[index]?.isLong = false
        let next = state.queue.pop(state.costs, mayBeLong: state.long < longLimit)
        guard let (next, others) = next else { return nil }
        state.slots[index]?.gathered = others
        state.slots[index]?.isLong = state.costs.isLong([next.work] + others.elements.map(\.work))
        return next
    }

    /// Returns the seconds of CPU time after which a render is treated as long.
    func longRenderThreshold(_ pending: PendingRender) -> Double {
        state.withLock { $0.costs.longRenderThreshold(pending.work) }
    }

    /// Treats a render as long because it takes longer than its estimate. Returns whether the render must stop because
    /// the maximum number of long renders are already running.
    func countAsLong(_ pending: PendingRender) -> Bool {
        pending.countAsLong()
        return state.withLock { state in
            guard let index = Self.slot(of: pending, state), state.slots[index]?.isLong == false else { return false }
            if state.long >= longLimit { return !state.isClosing }
            state.slots[index]?.isLong = true
            return false
        }
    }

    /// Returns a stopped render to the queue, together with the renders that shared its decode.
    func requeue(_ pending: PendingRender) {
        let isCancelled = state.withLock { state in
            if let index = Self.slot(of: pending, state) {
                while let other = state.slots[index]?.gathered.pop() {
                    other.countAsLong()
                    Self.wait(&state, other)
                }
            }
            if pending.isCancelled { return true }
            Self.wait(&state, pending)
            return false
        }
        if isCancelled { pending.finish(.failure(PendingRender.cancelled)) }
    }

    private static func slot(of pending: PendingRender, _ state: State) -> Int? {
        state.slots.first { $0.value.running == pending.id }?.key
    }

    private static func wait(_ state: inout State, _ pending: PendingRender) {
        state.lastID += 1
        pending.wait(as: state.lastID)
        state.queue.push(pending, id: pending.id, priority: pending.priority)
    }

    /// Corrects the cost estimates with the actual cost of this render.
    func learn(_ pending: PendingRender, milliseconds: Double) {
        // If a render shared a decode, its time covers only a part of its cost.
        guard pending.job.shared == nil else { return }
        state.withLock { $0.costs.learn(pending.estimate, milliseconds: milliseconds) }
    }

    /// Removes a slot when its thread ends, and closes its file. The last slot resumes the callers that are waiting for
    /// the shutdown.
    func removeSlot(_ index: Int, _ wakeup: Wakeup) {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.slots[index] = nil
            wakeup.end()
            guard state.slots.isEmpty else { return [] }
            defer { state.awaitingEnd = [] }
            return state.awaitingEnd
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Starts a worker on the calling thread and records the outcome.
    func startWorker() throws(RenderError) -> WorkerProcess {
        do throws(RenderError) {
            let worker = try WorkerProcess.start(configuration)
            started(.success(worker))
            return worker
        } catch {
            started(.failure(error))
            throw error
        }
    }

    /// Terminates a worker that exited or sent data while it was idle, and logs it.
    func lost(_ worker: WorkerProcess) {
        let ended = worker.end()
        count(\.crashed)
        configuration.warn(
            "render worker \(worker.child) \(ended) while it was idle" + (worker.remarks.map { ": " + $0 } ?? ""))
    }

    func startRefusal() -> RenderError? {
        state.withLock { Self.refusal($0) }
    }

    private static func refusal(_ state: State) -> RenderError? {
        state.backoff.delay(now: SystemClock.monotonic.seconds) > 0 ? state.backoff.reason : nil
    }

    private func started(_ result: Result<WorkerProcess, RenderError>) {
        let waiting = state.withLock { state in
            switch result {
            case .success(let worker):
                state.backoff.succeeded()
                state.protection = worker.protection
                state.libraries = worker.libraries
                state.statistics.started += 1
            case .failure(let error):
                state.backoff.failed(error, now: SystemClock.monotonic.seconds)
            }
            defer { state.awaitingStart = [] }
            return state.awaitingStart
        }
        for continuation in waiting { continuation.resume(returning: result.map(\.protection)) }
    }

    func count(_ what: WritableKeyPath<WorkerStatistics, Int>) {
        state.withLock { $0.statistics[keyPath: what] += 1 }
    }

    // MARK: Quarantine

    /// Throws if the render is quarantined.
    func admit(_ pending: PendingRender) throws(RenderError) {
        let job = pending.job
        guard state.withLock({ $0.quarantine.mayContain(count: job.original.count) }) else { return }
        let original = try fingerprint(job)
        let now = SystemClock.monotonic.seconds
        let entry = state.withLock { state in
            let entry = state.quarantine.entry(original, job.variant, now: now)
            if entry != nil { state.statistics.refused += 1 }
            return entry
        }
        guard let entry else { return }
        let code: RenderError.Code =
            switch entry.failure {
            case .crash: .quarantined
            case .deadline: .deadline
            }
        throw RenderError(
            code,
            "not rendered, because \(Int((now - entry.since).rounded())) s ago \(entry.reason); retry in "
                + "\(Int((entry.until - now).rounded(.up))) s")
    }

    /// Prevents a failed render from being retried for some time.
    func quarantine(_ job: RenderJob, _ failure: Quarantine.Failure, _ reason: String) {
        // An original that can no longer be read will not fail in a worker again.
        guard configuration.quarantine > .zero, let original = try? fingerprint(job) else { return }
        state.withLock {
            $0.quarantine.add(
                original, job.variant, failure, reason: reason, now: SystemClock.monotonic.seconds,
                seconds: configuration.quarantine.inSeconds)
        }
    }

    private func fingerprint(_ job: RenderJob) throws(RenderError) -> Quarantine.Fingerprint {
        try job.original.bytes().withUnsafeBytes { Quarantine.Fingerprint($0) }
    }
}
