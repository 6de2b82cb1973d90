import Synchronization

/// A queue of loads that its user steers: how many run, in which order, which of them newer ones replace.
///
/// It has no cache, no thread and no policy of its own: the pipeline does the work, and shares it with everybody else who
/// asks. A loader that is no longer held ends when its last load has; what it holds back while suspended waits for `resume()`.
public final class ImageLoader: Sendable {
    private struct State {
        var queue: LoaderQueue
        var loads: [LoaderQueue.Member: LoadTask] = [:]
        var next: LoaderQueue.Member = 0
    }

    private let pipeline: ImagePipeline
    private let state: Mutex<State>

    /// A loader before a pipeline, which may have several.
    public init(_ pipeline: ImagePipeline, _ configuration: LoaderConfiguration = LoaderConfiguration()) {
        self.pipeline = pipeline
        state = Mutex(State(queue: LoaderQueue(configuration)))
    }

    /// A load that begins when it is its turn. The same request twice takes one place, and what memory can answer none.
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

    /// Lets nothing new begin; what runs goes on.
    public func suspend() { state.withLock { $0.queue.suspend(true) } }

    /// Lets loads begin again.
    public func resume() {
        state.withLock { $0.queue.suspend(false) }
        beginNext()
    }

    /// Cancels every load, prefetches included. New ones may be added at once.
    public func cancelAll() {
        let loads = state.withLock { state in
            state.queue.removeAll()
            defer { state.loads = [:] }
            return Array(state.loads.values)
        }
        for load in loads { load.cancel() }
    }

    /// What it has to do and has done.
    public var statistics: LoaderStatistics { state.withLock { $0.queue.statistics } }

    private func add(_ request: ImageRequest, isPrefetch: Bool) -> LoadTask {
        let key = LoadKey(request)
        let (load, added, superseded) = state.withLock { state in
            state.next += 1
            let member = state.next
            let load = LoadTask(request) { [self] in end(member) }
            let added = state.queue.add(member, key, isPrefetch: isPrefetch)
            state.loads[member] = load
            return (load, added, added.superseded.compactMap { state.loads.removeValue(forKey: $0) })
        }
        for old in superseded {
            let goesOn = old.request.finishWhenAbandoned
            let error = PipelineError(.superseded, "\(old.request.source.displayName): a newer load took its place")
            // One that runs goes on by itself; one that waited does so behind the others.
            if old.end(error, leavesWork: goesOn), goesOn { _ = prefetch([old.request]) }
        }
        if added.beginsNow { begin([load]) }
        return load
    }

    private func end(_ member: LoaderQueue.Member) {
        state.withLock { state in
            state.loads[member] = nil
            state.queue.end(member)
        }
        beginNext()
    }

    private func beginNext() {
        while true {
            let loads = state.withLock { state -> [LoadTask]? in
                let loads = state.loads
                return state.queue.next { loads[$0]?.priority ?? .low }?.compactMap { loads[$0] }
            }
            guard let loads else { return }
            begin(loads)
        }
    }

    private func begin(_ loads: [LoadTask]) {
        for load in loads {
            load.begin { [pipeline] (request, tell) async throws(PipelineError) in
                try await pipeline.respond(to: request, telling: tell, showsStale: true)
            }
        }
    }
}
