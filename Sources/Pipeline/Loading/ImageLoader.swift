import Synchronization
public import Variants

/// A queue of loads that its user steers: how many run, in which order, which of them newer ones replace.
///
/// It has no cache, no thread and no policy of its own: the pipeline does the work, and shares it with everybody else who
/// asks. A loader that is released does all that it was asked for, unless it is suspended: then loads that wait end with
/// `cancelled`.
public final class ImageLoader: Sendable {
    private struct State {
        var queue: LoaderQueue
        var loads: [LoaderQueue.Member: LoadTask] = [:]
        var next: LoaderQueue.Member = 0
        /// Loads that were cancelled while others had their place: their work goes on for as long as those want it, since one
        /// that has just begun may not have joined it yet.
        var left: [LoaderQueue.Member: [LoadTask]] = [:]

        /// Removes those whose place is gone.
        mutating func unneeded() -> [LoadTask] {
            queue.takeGone().flatMap { left.removeValue(forKey: $0) ?? [] }
        }
    }

    private let pipeline: ImagePipeline
    private let state: Mutex<State>

    /// A loader before a pipeline, which may have several.
    public init(_ pipeline: ImagePipeline, _ configuration: LoaderConfiguration = LoaderConfiguration()) {
        self.pipeline = pipeline
        state = Mutex(State(queue: LoaderQueue(configuration)))
    }

    /// Running loads retain their loader, so loads can wait here only if it is suspended.
    deinit {
        for load in state.withLock({ $0.loads.values }) { load.cancel() }
    }

    /// A load that begins when it is its turn. The same request twice takes one place, and what memory can answer none.
    /// Requests with bytes are the same if they have the same `sourceID` or share one array.
    public func load(_ request: ImageRequest) -> LoadTask {
        if let ended = pipeline.loadFromMemory(request) { return ended }
        let load = add(request, isPrefetch: false)
        beginNext()
        return load
    }

    /// Loads that begin when nothing else waits, in this order, with low priority, for what will be wanted soon. A load of
    /// the same request joins and raises one.
    public func prefetch(_ requests: [ImageRequest]) -> [LoadTask] {
        let loads = requests.map { request in
            var low = request
            low.priority = .low
            return add(low, isPrefetch: true)
        }
        beginNext()
        return loads
    }

    /// The same for sources given as text, such as `["photos:42", "https://example.org/a.jpg"]`.
    public func prefetch(_ sources: [String], recipe: Recipe) -> [LoadTask] {
        prefetch(sources.map { ImageRequest(ImageSource($0), recipe: recipe) })
    }

    /// Lets nothing new begin; what runs goes on.
    public func suspend() { state.withLock { $0.queue.suspend(true) } }

    /// Lets loads begin again.
    public func resume() {
        state.withLock { $0.queue.suspend(false) }
        beginNext()
    }

    /// Cancels every load, prefetches included. New ones may be added at once.
    public func cancelAll() {
        let (loads, unneeded) = state.withLock { state in
            state.queue.removeAll()
            defer { state.loads = [:] }
            return (Array(state.loads.values), state.unneeded())
        }
        for load in loads { load.cancel() }
        for load in unneeded { load.cancelWork() }
    }

    /// What it has to do and has done.
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
            return (load, added, superseded, state.unneeded())
        }
        for old in unneeded { old.cancelWork() }
        for old in superseded {
            let goesOn = old.request.finishWhenAbandoned
            let error = PipelineError(.superseded, "\(old.request.source.displayName): a newer load took its place")
            // One that runs goes on by itself; one that waited does so behind the others.
            if old.end(error, leavesWork: goesOn), goesOn { _ = prefetch([old.request]) }
        }
        if added.beginsNow { begin([load]) }
        return load
    }

    private func takePriority(of member: LoaderQueue.Member) {
        state.withLock { state in
            if let priority = state.loads[member]?.priority { state.queue.setPriority(member, priority) }
        }
    }

    /// - Returns: whether others have the load's place, so that its work goes on.
    private func end(_ member: LoaderQueue.Member) -> Bool {
        let (isShared, unneeded) = state.withLock { state -> (Bool, [LoadTask]) in
            let load = state.loads.removeValue(forKey: member)
            guard let end = state.queue.end(member) else { return (false, []) }
            if end.isShared, let load { state.left[end.place, default: []].append(load) }
            return (end.isShared, state.unneeded())
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
        for load in loads {
            load.begin { [self] (request, tell) async throws(PipelineError) in
                try await pipeline.respond(to: request, telling: tell, showsStale: true)
            }
        }
    }
}
