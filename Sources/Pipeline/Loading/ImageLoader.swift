import Synchronization
public import Variants

/// Queues loads for a program that shows many pictures, such as a list that scrolls.
///
/// A loader limits how many loads run at a time. More urgent loads begin first, and prefetches begin last. With a limit
/// on waiting loads, newer loads supersede older loads (`LoaderConfiguration`).
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// let loader = ImageLoader(pipeline)
/// let task = loader.load(ImageRequest(.url("https://example.org/1.jpg"), recipe: .thumbnail(300)))
/// let ahead = loader.prefetch(["https://example.org/2.jpg"], recipe: .thumbnail(300))
/// let image = try await task.response
/// for prefetch in ahead { prefetch.cancel() }
/// ```
///
/// A loader has no cache, threads or policy. The pipeline does the work and shares it among all requests. Loads finish
/// even if their loader is released, unless the loader is suspended: its waiting loads then end with `cancelled`.
public final class ImageLoader: Sendable {
    private struct State {
        var queue: LoaderQueue
        var loads: [LoaderQueue.Member: LoadTask] = [:]
        var next: LoaderQueue.Member = 0
        /// Cancelled loads of requests that other loads still wait for, by request. Their work continues for as
        /// long as the other loads need it, because a load that has just begun may not have joined the work yet.
        var cancelledLoads: [LoaderQueue.Member: [LoadTask]] = [:]

        /// Removes and returns the cancelled loads of requests that have ended.
        mutating func takeUnneededLoads() -> [LoadTask] {
            queue.takeEndedRequests().flatMap { cancelledLoads.removeValue(forKey: $0) ?? [] }
        }
    }

    private let pipeline: ImagePipeline
    private let state: Mutex<State>

    /// Creates a loader for a pipeline. A pipeline may have several loaders.
    public init(_ pipeline: ImagePipeline, _ configuration: LoaderConfiguration = LoaderConfiguration()) {
        self.pipeline = pipeline
        state = Mutex(State(queue: LoaderQueue(configuration)))
    }

    /// Running loads retain their loader, so loads can be waiting here only if the loader is suspended.
    deinit {
        for load in state.withLock({ $0.loads.values }) { load.cancel() }
    }

    /// Returns a load that begins when the queue reaches it. Equal requests share one entry in the queue. A request
    /// that memory can answer takes no entry. Requests with bytes are equal if they have the same `sourceID` or share
    /// one array.
    public func load(_ request: ImageRequest) -> LoadTask {
        if let ended = pipeline.loadFromMemory(request) { return ended }
        let load = add(request, isPrefetch: false)
        beginNext()
        return load
    }

    /// Returns loads for pictures that will be needed soon. The loads begin in this order, with low priority, when no
    /// other loads are waiting. Calling `load(_:)` for the same request joins the prefetch and raises its priority.
    public func prefetch(_ requests: [ImageRequest]) -> [LoadTask] {
        let loads = requests.map { request in
            var low = request
            low.priority = .low
            return add(low, isPrefetch: true)
        }
        beginNext()
        return loads
    }

    /// Returns loads for sources given as strings, such as `["photos:42", "https://example.org/a.jpg"]`. In all other
    /// respects, the method behaves like `prefetch(_:)`.
    public func prefetch(_ sources: [String], recipe: Recipe) -> [LoadTask] {
        prefetch(sources.map { ImageRequest(ImageSource($0), recipe: recipe) })
    }

    /// Stops starting loads. Running loads continue.
    public func suspend() { state.withLock { $0.queue.suspend(true) } }

    /// Starts loads again after `suspend()`.
    public func resume() {
        state.withLock { $0.queue.suspend(false) }
        beginNext()
    }

    /// Cancels every load, including prefetches. New loads may be added immediately.
    public func cancelAll() {
        let (loads, unneeded) = state.withLock { state in
            state.queue.removeAll()
            defer { state.loads = [:] }
            return (Array(state.loads.values), state.takeUnneededLoads())
        }
        for load in loads { load.cancel() }
        for load in unneeded { load.cancelWork() }
    }

    /// The numbers of waiting, running and finished loads.
    public var statistics: LoaderStatistics { state.withLock { $0.queue.statistics } }

    private func add(_ request: ImageRequest, isPrefetch: Bool) -> LoadTask {
        let key = LoadKey(request)
        let (load, added, superseded, unneeded) = state.withLock { state in
            state.next += 1
            let member = state.next
            let load = LoadTask(request, onPriority: { [weak self] in self?.takePriority(of: member) }) { [weak self] in
                self?.end(member) ?? false
            }
            let added = state.queue.add(member, key, isPrefetch: isPrefetch, priority: request.priority)
            state.loads[member] = load
            let superseded = added.superseded.compactMap { state.loads.removeValue(forKey: $0) }
            return (load, added, superseded, state.takeUnneededLoads())
        }
        for old in unneeded { old.cancelWork() }
        for old in superseded {
            let goesOn = old.request.finishWhenAbandoned
            let error = PipelineError(.superseded, "\(old.request.source.displayName): replaced by a newer load")
            // A running load continues in the background. A waiting load is queued again as a prefetch.
            if old.end(error, leavesWork: goesOn), goesOn { _ = prefetch([old.request]) }
        }
        if added.beginsNow { begin([load]) }
        return load
    }

    private func takePriority(of member: LoaderQueue.Member) {
        state.withLock { state in
            if let priority = state.loads[member]?.priority { state.queue.setPriority(member, priority) }
        }
        beginNext()
    }

    /// Removes a load that has ended.
    ///
    /// - Returns: whether other loads share the request of the load, so that its work continues.
    private func end(_ member: LoaderQueue.Member) -> Bool {
        let (isShared, unneeded) = state.withLock { state -> (Bool, [LoadTask]) in
            let load = state.loads.removeValue(forKey: member)
            guard let end = state.queue.end(member) else { return (false, []) }
            if end.isShared, let load { state.cancelledLoads[end.request, default: []].append(load) }
            return (end.isShared, state.takeUnneededLoads())
        }
        for load in unneeded { load.cancelWork() }
        beginNext()
        return isShared
    }

    private func beginNext() {
        while true {
            let loads = state.withLock { state -> [LoadTask]? in
                state.queue.next()?.compactMap { state.loads[$0] }
            }
            guard let loads else { return }
            begin(loads)
        }
    }

    private func begin(_ loads: [LoadTask]) {
        for load in loads { pipeline.begin(load, for: self) }
    }
}
