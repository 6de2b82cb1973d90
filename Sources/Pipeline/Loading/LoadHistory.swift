/// The events of one load, and how far each reader has read them. This is a value type, so the caller supplies the
/// time.
struct LoadHistory: Sendable {
    /// The minimum time between `progress` events.
    static let pause = Duration.milliseconds(200)

    private(set) var status = LoadStatus()
    private var hadCached: Bool?
    private var hasRendered = false
    /// The number of `progress` events so far, and the last one.
    private var progressCount = 0
    private var progress = (received: 0, expected: Int?.none)
    private var isProgressHeld = false
    private var lastProgress: ContinuousClock.Instant?

    /// Adds an event. Ignores an event that is out of order, for example when an evicted body is fetched again during a
    /// render.
    ///
    /// - Returns: whether a new event is available to readers.
    mutating func take(_ event: LoadEvent, at now: ContinuousClock.Instant) -> Bool {
        switch event {
        case .cached(let response):
            guard status.phase == .waiting, status.cached == nil else { return false }
            status.cached = response
        case .fetching(let hadCached):
            guard status.phase == .waiting else { return false }
            status.phase = .fetching
            self.hadCached = hadCached
        case .progress(let received, let expected):
            // A load that joins shared work can receive an older report after a newer one. Ignore the older one.
            guard status.phase == .fetching, received >= status.received || expected != status.expected else {
                return false
            }
            (status.received, status.expected) = (received, expected)
            isProgressHeld = true
            if let lastProgress, lastProgress.duration(to: now) < Self.pause { return false }
            publishProgress(at: now)
        case .rendering:
            guard status.phase < .rendering else { return false }
            publishProgress(at: now)
            status.phase = .rendering
            hasRendered = true
        case .finished(let result):
            guard status.phase < .finished else { return false }
            publishProgress(at: now)
            status.phase = .finished
            status.result = result
        }
        return true
    }

    /// Finishes the load with an error, unless it has already finished. Returns whether it did.
    mutating func end(_ error: PipelineError, at now: ContinuousClock.Instant) -> Bool {
        guard take(.finished(.failure(error)), at: now) else { return false }
        status.isCancelled = error.isCancellation
        return true
    }

    private mutating func publishProgress(at now: ContinuousClock.Instant) {
        guard isProgressHeld else { return }
        progress = (status.received, status.expected)
        progressCount += 1
        isProgressHeld = false
        lastProgress = now
    }

    /// A reader's position in the history.
    struct Position: Sendable {
        private var hasCached = false
        private var hasFetching = false
        private var progressCount = 0
        private var hasRendering = false
        private var hasFinished = false

        /// Returns the next event, or nil if no event is available yet.
        mutating func next(in history: LoadHistory) -> LoadEvent? {
            if !hasCached, let cached = history.status.cached {
                hasCached = true
                return .cached(cached)
            }
            if !hasFetching, let hadCached = history.hadCached {
                hasFetching = true
                return .fetching(hadCached: hadCached)
            }
            if progressCount < history.progressCount {
                progressCount = history.progressCount
                return .progress(received: history.progress.received, expected: history.progress.expected)
            }
            if !hasRendering, history.hasRendered {
                hasRendering = true
                return .rendering
            }
            if !hasFinished, let result = history.status.result {
                hasFinished = true
                return .finished(result)
            }
            return nil
        }

        /// Whether an event is available, or the reader is at the end.
        func isDue(in history: LoadHistory) -> Bool {
            var later = self
            return hasFinished || later.next(in: history) != nil
        }

        /// Whether the reader has received `finished`.
        var isAtEnd: Bool { hasFinished }
    }
}
