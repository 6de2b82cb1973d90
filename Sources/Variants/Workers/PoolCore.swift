import PipelineSupport
import CSandbox
import Glibc
import Synchronization

/// State that the threads of a pool share: the queue, and what is known about the workers.
final class PoolCore: Sendable {
    enum Step {
        case render(PendingRender)
        /// Start a worker before a render asks for it. One that is awaited says itself why it cannot be started.
        case start(isAwaited: Bool)
        /// Wait to be woken, for at most this many milliseconds; -1 for ever.
        case wait(Int32)
        case end
    }

    private struct Slot {
        let slot: WorkerSlot
        var isIdle = false
        var hasWorker = false
        var running: UInt64?
        /// Whether the render that runs is long, by itself or together with those gathered with it.
        var isLong = false
        /// Renders that share the decode of its last one, and follow it on its worker.
        var gathered = UrgencyQueue<PendingRender>(oldestEvery: 4)
    }

    private struct State {
        var queue = RenderQueue<PendingRender>()
        /// Slots whose threads have not ended, by number, from 0.
        var slots: [Int: Slot] = [:]
        var lastSlot = -1
        var lastID: UInt64 = 0
        var keepsWorkers: Bool
        /// Whether the next idle thread starts a worker.
        var awaitsFirst = false
        /// The warm spare, if workers are kept; its thread ends after those of the slots.
        var spare: SpareWorker?
        var isClosing = false
        var backoff = StartBackoff()
        var quarantine = Quarantine()
        var costs = RenderCosts()
        var protection: WorkerProtection?
        /// Of the worker that started last.
        var libraries: RenderLibraries?
        var statistics = WorkerStatistics()
        var awaitingStart: [CheckedContinuation<Result<WorkerProtection, RenderError>, Never>] = []
        var awaitingEnd: [CheckedContinuation<Void, Never>] = []

        /// Slots that do long renders.
        var long: Int { slots.values.count { $0.isLong } }
    }

    let configuration: WorkerConfiguration
    private let count: Int
    /// The most slots that do long renders: one is kept for short ones, if there are two or more.
    private let longLimit: Int
    private let state: Mutex<State>

    init(_ configuration: WorkerConfiguration) {
        self.configuration = configuration
        count = max(1, configuration.count ?? Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) + 1)
        longLimit = configuration.longRenders ?? max(1, count - 1)
        state = Mutex(State(keepsWorkers: configuration.isPrewarmed))
        if configuration.isPrewarmed { startAll() }
    }

    // MARK: What callers ask for

    func newID() -> UInt64 {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    func submit(_ pending: PendingRender) {
        let refusal = state.withLock { state -> RenderError? in
            if pending.isCancelled { return PendingRender.cancelled }
            if state.isClosing { return Self.closed }
            state.queue.push(pending, id: pending.id, priority: pending.priority, state.costs)
            offer(&state)
            guard !state.slots.isEmpty else {
                _ = state.queue.remove(id: pending.id)
                return RenderError(
                    .workerUnavailable, "render workers cannot be started: the system cannot create a thread")
            }
            return nil
        }
        if let refusal { pending.finish(.failure(refusal)) }
    }

    /// Has a slot look at what waits: an idle one, or else a new one.
    private func offer(_ state: inout State) {
        guard !state.queue.isEmpty, !Self.wakeIdle(&state) else { return }
        if state.slots.count < count { addSlot(&state) }
    }

    private static func wakeIdle(_ state: inout State) -> Bool {
        // Prefer a slot with a worker to one that has to start a worker.
        let idle = state.slots.filter { $0.value.isIdle }
        guard let (index, chosen) = idle.first(where: { $0.value.hasWorker }) ?? idle.first else { return false }
        state.slots[index]?.isIdle = false
        chosen.slot.wake()
        return true
    }

    /// Removes a render from the queue, or has its worker stop it.
    func cancel(_ pending: PendingRender) {
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

    /// Makes a render that waits at least this urgent.
    func raise(_ pending: PendingRender, to priority: UInt8) {
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

    /// Starts a worker if none has started yet, and resumes when one has, or cannot be started.
    func awaitFirst(_ continuation: CheckedContinuation<Result<WorkerProtection, RenderError>, Never>) {
        let known = state.withLock { state -> Result<WorkerProtection, RenderError>? in
            if let protection = state.protection { return .success(protection) }
            if let reason = Self.refusal(state) { return .failure(reason) }
            if state.isClosing { return .failure(Self.closed) }
            state.awaitsFirst = true
            if !Self.wakeIdle(&state), state.slots.isEmpty, !addSlot(&state) {
                state.awaitsFirst = false
                return .failure(RenderError(.workerUnavailable, "the system cannot create a thread"))
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

    /// Starts all threads, each of which starts its worker, and wakes those without one. A spare follows.
    private func startAll() {
        state.withLock { state in
            while !state.isClosing, state.slots.count < count, addSlot(&state) {}
            for slot in state.slots.values where slot.isIdle && !slot.hasWorker { slot.slot.wake() }
            // The pool works without the spare's thread too; a killed worker is then replaced later.
            if state.spare == nil, !state.isClosing, !state.slots.isEmpty { state.spare = SpareWorker(core: self) }
        }
    }

    /// Adds a thread; false if the system cannot create one.
    @discardableResult
    private func addSlot(_ state: inout State) -> Bool {
        guard let slot = WorkerSlot(index: state.lastSlot + 1, core: self), slot.start() else { return false }
        state.lastSlot += 1
        state.slots[state.lastSlot] = Slot(slot: slot)
        return true
    }

    var protection: WorkerProtection? { state.withLock { $0.protection } }
    var libraries: RenderLibraries? { state.withLock { $0.libraries } }
    var isClosing: Bool { state.withLock { $0.isClosing } }
    var long: Int { state.withLock { $0.long } }
    var running: Int { state.withLock { $0.slots.values.count { $0.running != nil } } }
    var waiting: Int {
        state.withLock { state in
            state.slots.values.reduce(state.queue.count) { $0 + $1.gathered.count }
        }
    }
    var statistics: WorkerStatistics { state.withLock { $0.statistics } }

    /// Stops the threads and their workers once no render waits for them.
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
                let isDone = state.slots.isEmpty && state.spare == nil
                if !isDone { state.awaitingEnd.append(continuation) }
                return isDone
            }
            if isDone { continuation.resume() }
        }
    }

    // MARK: What slots ask for

    func next(_ index: Int, hasWorker: Bool) -> Step {
        state.withLock { state in
            state.slots[index]?.running = nil
            state.slots[index]?.hasWorker = hasWorker
            if let pending = take(&state, index) {
                state.slots[index]?.isIdle = false
                state.slots[index]?.running = pending.id
                // If the last one was long, or what it cost changed the estimates, another slot may begin a long one now.
                offer(&state)
                return .render(pending)
            }
            state.slots[index]?.isIdle = true
            if state.isClosing {
                // A worker is killed when the thread that started it ends, and may be another slot's by now.
                return state.slots.values.allSatisfy { $0.running == nil } ? .end : .wait(-1)
            }
            let isFirst = state.awaitsFirst
            state.awaitsFirst = false
            guard state.keepsWorkers || isFirst, !hasWorker else { return .wait(-1) }
            let delay = state.backoff.delay(now: SystemClock.monotonic.seconds)
            return delay > 0 ? .wait(Int32((delay * 1000).rounded(.up))) : .start(isAwaited: !state.keepsWorkers)
        }
    }

    /// The next render for a slot: one that shares the decode of its last, or else the next in the queue, with those that
    /// then share its decode.
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

    /// Seconds of CPU time after which a render counts as long.
    func patience(_ pending: PendingRender) -> Double { state.withLock { $0.costs.patience(pending.work) } }

    /// Counts a render as long that takes longer than its estimate. Returns whether it must stop, because the most long
    /// renders that are allowed already run.
    func outlived(_ pending: PendingRender) -> Bool {
        pending.countAsLong()
        return state.withLock { state in
            guard let index = Self.slot(of: pending, state), state.slots[index]?.isLong == false else { return false }
            if state.long >= longLimit { return !state.isClosing }
            state.slots[index]?.isLong = true
            return false
        }
    }

    /// Puts a stopped render back into the queue, and the renders that shared its decode.
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

    /// Corrects the estimates of what renders cost by what this one did.
    func learn(_ pending: PendingRender, milliseconds: Double) {
        // One that shared a decode had a part of its cost only.
        guard pending.job.shared == nil else { return }
        state.withLock { $0.costs.learn(pending.estimate, milliseconds: milliseconds) }
    }

    /// Removes a slot whose thread ends, so it is not woken any more. The last one returns the waiting callers.
    func leave(_ index: Int) -> [CheckedContinuation<Void, Never>] {
        state.withLock { state in
            state.slots[index] = nil
            for slot in state.slots.values { slot.slot.wake() }
            guard state.slots.isEmpty else { return [] }
            if let spare = state.spare {
                spare.end()
                return []
            }
            defer { state.awaitingEnd = [] }
            return state.awaitingEnd
        }
    }

    /// Takes the warm spare, if it is ready; its thread then waits for the worker given in exchange.
    func ready(for exchanged: SpareWorker.Exchanged) -> WorkerProcess? {
        state.withLock { $0.spare }?.take(for: exchanged)
    }

    var hasSpare: Bool { state.withLock { $0.spare }?.isReady ?? false }

    /// Seconds to wait before starting a spare worker; nil until a slot's worker has started.
    func spareDelay() -> Double? {
        state.withLock { $0.protection == nil ? nil : $0.backoff.delay(now: SystemClock.monotonic.seconds) }
    }

    /// Removes the spare after its thread has ended. Returns the callers that wait for the shutdown.
    func spareEnded() -> [CheckedContinuation<Void, Never>] {
        state.withLock { state in
            state.spare = nil
            defer { state.awaitingEnd = [] }
            return state.awaitingEnd
        }
    }

    /// Starts a worker on the calling thread, and records the outcome.
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

    /// Terminates a worker that ended, or sent something, while it was idle, and logs it.
    func lost(_ worker: WorkerProcess) {
        let ended = worker.end()
        // Workers are killed when the threads that started them end.
        if isClosing { return }
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
                state.spare?.wake()
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
            "not rendered: \(Int((now - entry.since).rounded())) s ago \(entry.reason); it will be retried in "
                + "\(Int((entry.until - now).rounded(.up))) s")
    }

    /// Prevents a failed render from being retried for a while.
    func quarantine(_ job: RenderJob, _ failure: Quarantine.Failure, _ reason: String) {
        // An original that can no longer be read will not fail again.
        guard configuration.quarantineSeconds > 0, let original = try? fingerprint(job) else { return }
        state.withLock {
            $0.quarantine.add(
                original, job.variant, failure, reason: reason, now: SystemClock.monotonic.seconds,
                seconds: configuration.quarantineSeconds)
        }
    }

    private func fingerprint(_ job: RenderJob) throws(RenderError) -> Quarantine.Fingerprint {
        try job.original.bytes().withUnsafeBytes { Quarantine.Fingerprint($0) }
    }
}
