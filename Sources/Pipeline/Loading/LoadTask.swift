import PipelineCaching
import Synchronization
import Tracing

/// One load of a picture, which runs whether or not a task waits for it.
///
/// When the last task that awaits `response` or reads `events` is cancelled, so is the load. One that no task waits for
/// runs to its end.
public final class LoadTask: Sendable, Identifiable, Hashable {
    /// What is loaded; its `priority` is what it was at the beginning.
    public let request: ImageRequest

    typealias Tell = @Sendable (LoadEvent) -> Void
    typealias Work = @Sendable (ImageRequest, @escaping Tell) async throws(PipelineError) -> ImageResponse

    private struct Waiter {
        let continuation: CheckedContinuation<Void, Never>
        /// What it waits for; nil for the end.
        let place: LoadHistory.Place?
    }

    private struct State {
        var history = LoadHistory()
        var priority: RequestPriority
        /// nil before it begins and after it has ended.
        var task: Task<Void, Never>?
        var hasBegun = false
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0
        /// Readers of events that have not left.
        var readers = 0
        /// Called once, when it has ended; returns whether its work goes on.
        var onEnd: (@Sendable () -> Bool)?

        /// Removes the waiters that have something to do.
        mutating func due() -> [Waiter] {
            let due = waiters.filter { _, waiter in
                waiter.place?.isDue(in: history) ?? (history.status.result != nil)
            }
            for id in due.keys { waiters[id] = nil }
            return Array(due.values)
        }
    }

    private let state: Mutex<State>
    /// Called when `priority` was set.
    private let onPriority: @Sendable () -> Void
    /// The trace of the task that asked for it: another one may let it begin.
    private let trace = InstrumentationContext.current

    init(
        _ request: ImageRequest, onPriority: @escaping @Sendable () -> Void = {},
        onEnd: (@Sendable () -> Bool)? = nil
    ) {
        self.request = request
        self.onPriority = onPriority
        state = Mutex(State(priority: request.priority, onEnd: onEnd))
    }

    /// A load that has ended with what memory had.
    convenience init(_ request: ImageRequest, _ response: ImageResponse) {
        self.init(request)
        take(.cached(response))
        take(.finished(.success(response)))
    }

    /// Whether both are the same load.
    public static func == (left: LoadTask, right: LoadTask) -> Bool { left === right }
    /// Hashes which load it is.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    // MARK: What callers see

    /// The picture, once it is there; any number of tasks may ask, any number of times, and get the same.
    ///
    /// - Throws: as `ImagePipeline.respond(to:)`; `cancelled` too if the task that asks is cancelled.
    public var response: ImageResponse {
        get async throws(PipelineError) {
            while true {
                if let result = state.withLock({ $0.history.status.result }) { return try result.get() }
                guard await wait(at: nil) else {
                    leave()
                    // The load may have ended in the same moment.
                    if case .success(let response)? = state.withLock({ $0.history.status.result }) { return response }
                    throw .cancelled
                }
            }
        }
    }

    /// What happens in the load, for one more reader, which begins with `cached` and the last `progress` if there were any,
    /// and ends after `finished`. A reader that is slow misses `progress` alone. One that stops reading leaves the load as it is:
    /// `cancel()` ends it.
    public var events: LoadEvents { LoadEvents(task: self) }

    /// What is known of the load now.
    public var status: LoadStatus { state.withLock { $0.history.status } }

    /// How urgent it is. It can be raised at any time, also while it waits for a transfer or a render; lowered only before it
    /// has begun.
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

    /// Ends this load with `cancelled`, and nothing that others share of it.
    public func cancel() { end(.cancelled) }

    /// Ends it with an error, at once.
    ///
    /// - Parameter leavesWork: whether work that has begun goes on, for the caches.
    /// - Returns: whether it had neither begun nor ended.
    @discardableResult
    func end(_ error: PipelineError, leavesWork: Bool = false) -> Bool {
        typealias Ended = (hasBegun: Bool, due: [Waiter], onEnd: (@Sendable () -> Bool)?)
        let ended = state.withLock { state -> Ended? in
            guard state.history.end(error, at: .now) else { return nil }
            return (state.task != nil, state.due(), state.onEnd.take())
        }
        guard let ended else { return false }
        for waiter in ended.due { waiter.continuation.resume() }
        let goesOn = ended.onEnd?() ?? false
        if !leavesWork, !goesOn { cancelWork() }
        return !ended.hasBegun
    }

    /// Cancels work that went on.
    func cancelWork() { state.withLock { $0.task.take() }?.cancel() }

    /// How many tasks wait for something of it now.
    var waiting: Int { state.withLock { $0.waiters.count } }

    // MARK: Running it

    /// Begins the load; again, or after its end, it does nothing.
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
            // Its task ends with it, whatever became of the load.
            defer { state.withLock { $0.task = nil } }
            guard let priority else { return }
            var request = request
            request.priority = priority
            let result = await InstrumentationContext.$current.withValue(trace) { [request] in
                await Result { () async throws(PipelineError) in try await work(request) { self.take($0) } }
            }
            // The end lets a loader begin the next load, which `work` retains.
            withExtendedLifetime(work) { take(.finished(result)) }
        }
        let (isOver, raised) = state.withLock { state -> (Bool, TaskPriority) in
            let isOver = state.history.status.result != nil
            if !isOver { state.task = task }
            return (isOver, state.priority.taskPriority)
        }
        if isOver { task.cancel() } else if raised > urgency { task.escalatePriority(to: raised) }
    }

    private func take(_ event: LoadEvent) {
        let (due, onEnd) = state.withLock { state -> ([Waiter], (@Sendable () -> Bool)?) in
            guard state.history.take(event, at: .now) else { return ([], nil) }
            guard case .finished = event else { return (state.due(), nil) }
            return (state.due(), state.onEnd.take())
        }
        for waiter in due { waiter.continuation.resume() }
        _ = onEnd?()
    }

    // MARK: Waiting for it

    /// Waits until there is something to tell.
    ///
    /// - Parameter place: how much the reader has been told; nil to wait for the end.
    /// - Returns: whether there is; otherwise the calling task was cancelled.
    private func wait(at place: LoadHistory.Place?) async -> Bool {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDue = state.withLock { state in
                    let isDue = place?.isDue(in: state.history) ?? (state.history.status.result != nil)
                    // Checked with the lock held: a later cancellation finds the waiter.
                    if isDue || Task.isCancelled { return true }
                    state.waiters[id] = Waiter(continuation: continuation, place: place)
                    return false
                }
                if isDue { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume()
        }
        return !Task.isCancelled
    }

    /// A task that waited was cancelled: if it was the last one, so is the load.
    private func leave() {
        if state.withLock({ $0.waiters.isEmpty && $0.readers == 0 }) { cancel() }
    }

    fileprivate func beginReading() -> LoadHistory.Place {
        state.withLock { state in
            state.readers += 1
            return LoadHistory.Place(in: state.history)
        }
    }

    fileprivate func endReading(isCancelled: Bool) {
        state.withLock { $0.readers -= 1 }
        if isCancelled { leave() }
    }

    /// The reader's next event; nil at the end, and if the calling task was cancelled.
    fileprivate func event(at place: inout LoadHistory.Place) async -> LoadEvent? {
        while !place.isAtEnd {
            let (event, now) = state.withLock { [place] state in
                var now = place
                return (now.next(in: state.history), now)
            }
            place = now
            if let event { return event }
            guard await wait(at: place) else { return nil }
        }
        return nil
    }
}

/// What happens in a load, as one reader is told.
public struct LoadEvents: AsyncSequence, Sendable {
    public typealias Element = LoadEvent
    public typealias Failure = Never

    let task: LoadTask

    /// A reader of its own.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(task) }

    /// A reader.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// Tells the load when the reader leaves.
        private final class Reader {
            let task: LoadTask
            var place: LoadHistory.Place
            private var hasLeft = false

            init(_ task: LoadTask) {
                self.task = task
                place = task.beginReading()
            }

            func leave(isCancelled: Bool) {
                if !hasLeft { task.endReading(isCancelled: isCancelled) }
                hasLeft = true
            }

            deinit { leave(isCancelled: Task.isCancelled) }
        }

        private let reader: Reader

        fileprivate init(_ task: LoadTask) { reader = Reader(task) }

        /// The next event; nil after `finished`, and if the calling task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> LoadEvent? {
            if let event = await reader.task.event(at: &reader.place) { return event }
            reader.leave(isCancelled: Task.isCancelled)
            return nil
        }
    }
}
