import PipelineCaching
import Synchronization
import Tracing

/// A picture that is being loaded. Await `response` for the result, and read `events` to follow the load. Set
/// `priority` or call `cancel()` at any time.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// let task = pipeline.load(ImageRequest(.url("https://example.org/photo.jpg"), recipe: .thumbnail(300)))
/// for await event in task.events {
///     if case .progress(let received, let expected) = event { print(received, "of", expected ?? 0, "bytes") }
/// }
/// let image = try await task.response
/// ```
///
/// `ImagePipeline.load(_:)` returns a task that has already started. A task from an `ImageLoader` starts when the queue
/// reaches it.
///
/// The load runs whether or not a task waits for it. When the last task that awaits `response` or reads `events` is
/// cancelled, the load is cancelled too. A load that no task has waited for runs to completion.
public final class LoadTask: Sendable, Identifiable, Hashable {
    /// The request, with its initial priority.
    public let request: ImageRequest

    typealias EventHandler = @Sendable (LoadEvent) -> Void
    typealias Work = @Sendable (ImageRequest, @escaping EventHandler) async throws(PipelineError) -> ImageResponse

    private struct Waiter {
        let continuation: CheckedContinuation<Void, Never>
        /// The reader's position, or nil to wait for the end.
        let position: LoadHistory.Position?
    }

    private struct State {
        var history = LoadHistory()
        var priority: RequestPriority
        /// The running task, or nil before the load begins and after it has ended.
        var task: Task<Void, Never>?
        var hasBegun = false
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0
        /// The number of active readers of `events`.
        var readers = 0
        /// Called once when the load has ended. Returns whether the work continues.
        var onEnd: (@Sendable () -> Bool)?

        /// Removes and returns the waiters that can be resumed.
        mutating func takeDueWaiters() -> [Waiter] {
            let due = waiters.filter { _, waiter in
                waiter.position?.isDue(in: history) ?? (history.status.result != nil)
            }
            for id in due.keys { waiters[id] = nil }
            return Array(due.values)
        }
    }

    private let state: Mutex<State>
    /// Called after `priority` was set.
    private let onPriority: @Sendable () -> Void
    /// The trace context of the task that created the load. A different task may start the load.
    private let trace = InstrumentationContext.current

    init(
        _ request: ImageRequest, onPriority: @escaping @Sendable () -> Void = {},
        onEnd: (@Sendable () -> Bool)? = nil
    ) {
        self.request = request
        self.onPriority = onPriority
        state = Mutex(State(priority: request.priority, onEnd: onEnd))
    }

    /// Whether both refer to the same load.
    public static func == (left: LoadTask, right: LoadTask) -> Bool { left === right }
    /// Hashes the identity of the load.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    // MARK: Public interface

    /// The picture, when it is available. Any number of tasks may await it, any number of times.
    ///
    /// - Throws: the errors of `ImagePipeline.respond(to:)`, and `cancelled` if the calling task is cancelled.
    public var response: ImageResponse {
        get async throws(PipelineError) {
            while true {
                if let result = state.withLock({ $0.history.status.result }) { return try result.get() }
                guard await wait(at: nil) else {
                    cancelIfUnawaited()
                    // The load may have finished at the same moment.
                    if case .success(let response)? = state.withLock({ $0.history.status.result }) { return response }
                    throw .cancelled
                }
            }
        }
    }

    /// The events of the load, in order, ending with `finished`. Every iterator receives all events, however late it
    /// starts, but only the latest `progress`. Ending the iteration does not cancel the load. To cancel it, call
    /// `cancel()`.
    public var events: some AsyncSequence<LoadEvent, Never> & Sendable { LoadEvents(task: self) }

    /// The current state of the load.
    public var status: LoadStatus { state.withLock { $0.history.status } }

    /// The urgency of the load. It can be raised at any time, even while the load waits for a transfer or a render. It
    /// can be lowered only before the load has begun.
    public var priority: RequestPriority {
        get { state.withLock { $0.priority } }
        set {
            let raised = state.withLock { state -> Task<Void, Never>? in
                if newValue > state.priority {
                    state.priority = newValue
                    return state.task
                }
                if !state.hasBegun { state.priority = newValue }
                return nil
            }
            raised?.escalatePriority(to: newValue.taskPriority)
            onPriority()
        }
    }

    /// Ends this load with `cancelled`. Work that other loads share continues.
    public func cancel() { end(.cancelled) }

    /// Ends the load with an error immediately.
    ///
    /// - Parameter leavesWork: whether work in progress continues, to fill the caches.
    /// - Returns: whether the load had neither begun nor ended.
    @discardableResult
    func end(_ error: PipelineError, leavesWork: Bool = false) -> Bool {
        typealias Ended = (hasBegun: Bool, due: [Waiter], onEnd: (@Sendable () -> Bool)?)
        let ended = state.withLock { state -> Ended? in
            guard state.history.end(error, at: .now) else { return nil }
            return (state.task != nil, state.takeDueWaiters(), state.onEnd.take())
        }
        guard let ended else { return false }
        for waiter in ended.due { waiter.continuation.resume() }
        let goesOn = ended.onEnd?() ?? false
        if !leavesWork, !goesOn { cancelWork() }
        return !ended.hasBegun
    }

    /// Finishes the load with a stored picture.
    func end(with response: ImageResponse) {
        take(.cached(response))
        take(.finished(.success(response)))
    }

    /// Cancels work that continued after the load had ended.
    func cancelWork() { state.withLock { $0.task.take() }?.cancel() }

    /// The number of tasks that are waiting for an event or the result.
    var waiting: Int { state.withLock { $0.waiters.count } }

    // MARK: Running

    /// Begins the load. Does nothing if the load has already begun or ended.
    func begin(_ work: @escaping Work) {
        let urgency = state.withLock { state -> TaskPriority? in
            guard state.task == nil, !state.hasBegun, state.history.status.result == nil else { return nil }
            return state.priority.taskPriority
        }
        guard let urgency else { return }
        let task = Task(priority: urgency) { [self] in
            let priority = state.withLock { state -> RequestPriority? in
                state.hasBegun = true
                return state.history.status.result == nil ? state.priority : nil
            }
            // The task is released when it finishes, whatever the state of the load.
            defer { state.withLock { $0.task = nil } }
            guard let priority else { return }
            var request = request
            request.priority = priority
            let result = await InstrumentationContext.$current.withValue(trace) { [request] in
                await Result { () async throws(PipelineError) in try await work(request) { self.take($0) } }
            }
            // Finishing this load lets the loader begin its next load. `work` retains the loader until then.
            withExtendedLifetime(work) { take(.finished(result)) }
        }
        let (isOver, raised) = state.withLock { state -> (Bool, TaskPriority) in
            let isOver = state.history.status.result != nil
            if !isOver { state.task = task }
            return (isOver, state.priority.taskPriority)
        }
        if isOver { task.cancel() } else if raised > urgency { task.escalatePriority(to: raised) }
    }

    /// Ends the load when the timeout of the request has passed. Work that other loads share continues.
    func startClock() {
        guard let timeout = request.timeout else { return }
        let clock = Task { [weak self] in
            guard (try? await Task.sleep(for: timeout)) != nil, let self else { return }
            end(
                PipelineError(
                    status.phase == .rendering ? .renderDeadline : .fetchTimedOut,
                    "\(request.source.displayName): not finished within \(timeout), the timeout of the request"))
        }
        let hasEnded = state.withLock { state in
            let onEnd = state.onEnd
            state.onEnd = {
                clock.cancel()
                return onEnd?() ?? false
            }
            return state.history.status.result != nil
        }
        if hasEnded { clock.cancel() }
    }

    private func take(_ event: LoadEvent) {
        let (due, onEnd) = state.withLock { state -> ([Waiter], (@Sendable () -> Bool)?) in
            guard state.history.take(event, at: .now) else { return ([], nil) }
            guard case .finished = event else { return (state.takeDueWaiters(), nil) }
            return (state.takeDueWaiters(), state.onEnd.take())
        }
        for waiter in due { waiter.continuation.resume() }
        _ = onEnd?()
    }

    // MARK: Waiting

    /// Waits until an event is available.
    ///
    /// - Parameter position: the reader's position, or nil to wait for the end.
    /// - Returns: whether an event is available, or false if the calling task was cancelled.
    private func wait(at position: LoadHistory.Position?) async -> Bool {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDue = state.withLock { state in
                    let isDue = position?.isDue(in: state.history) ?? (state.history.status.result != nil)
                    // Checked while holding the lock, so that a later cancellation finds the waiter.
                    if isDue || Task.isCancelled { return true }
                    state.waiters[id] = Waiter(continuation: continuation, position: position)
                    return false
                }
                if isDue { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume()
        }
        return !Task.isCancelled
    }

    /// Cancels the load if the task that was cancelled was the last one waiting for it.
    private func cancelIfUnawaited() {
        if state.withLock({ $0.waiters.isEmpty && $0.readers == 0 }) { cancel() }
    }

    fileprivate func beginReading() -> LoadHistory.Position {
        state.withLock { $0.readers += 1 }
        return LoadHistory.Position()
    }

    fileprivate func endReading(isCancelled: Bool) {
        state.withLock { $0.readers -= 1 }
        if isCancelled { cancelIfUnawaited() }
    }

    /// Returns the reader's next event, or nil at the end or if the calling task was cancelled.
    fileprivate func event(at position: inout LoadHistory.Position) async -> LoadEvent? {
        while !position.isAtEnd {
            let (event, now) = state.withLock { [position] state in
                var now = position
                return (now.next(in: state.history), now)
            }
            position = now
            if let event { return event }
            guard await wait(at: position) else { return nil }
        }
        return nil
    }
}

/// The events of a load, for one reader.
private struct LoadEvents: AsyncSequence, Sendable {
    typealias Failure = Never

    let task: LoadTask

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(task) }

    struct AsyncIterator: AsyncIteratorProtocol {
        /// Tells the load when the reader has stopped reading.
        private final class Reader {
            let task: LoadTask
            var position: LoadHistory.Position
            private var hasStopped = false

            init(_ task: LoadTask) {
                self.task = task
                position = task.beginReading()
            }

            func stopReading(isCancelled: Bool) {
                if !hasStopped { task.endReading(isCancelled: isCancelled) }
                hasStopped = true
            }

            deinit { stopReading(isCancelled: Task.isCancelled) }
        }

        private let reader: Reader

        init(_ task: LoadTask) { reader = Reader(task) }

        /// Returns the next event, or nil after `finished` or if the calling task is cancelled.
        mutating func next(isolation actor: isolated (any Actor)?) async -> LoadEvent? {
            if let event = await reader.task.event(at: &reader.position) { return event }
            reader.stopReading(isCancelled: Task.isCancelled)
            return nil
        }
    }
}
