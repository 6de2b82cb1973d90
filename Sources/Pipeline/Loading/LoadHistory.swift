/// What has happened in one load, and what of that its readers have yet to be told. A value: time comes in.
struct LoadHistory: Sendable {
    /// No more often does `progress` reach readers.
    static let pause = Duration.milliseconds(200)

    private(set) var status = LoadStatus()
    private var hadCached: Bool?
    private var hasRendered = false
    /// How many `progress` events there were, and the last one.
    private var progressCount = 0
    private var progress = (received: 0, expected: Int?.none)
    private var isProgressHeld = false
    private var lastProgress: ContinuousClock.Instant?

    /// Takes what happens next. What comes too late for its place in the order is ignored: a body that was evicted is
    /// fetched again in the middle of a render, say.
    ///
    /// - Returns: whether there is something new to tell.
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
            // Of one fetch; what a joiner is told at first may come behind what it hears by then.
            guard status.phase == .fetching, received >= status.received || expected != status.expected else {
                return false
            }
            (status.received, status.expected) = (received, expected)
            isProgressHeld = true
            if let lastProgress, lastProgress.duration(to: now) < Self.pause { return false }
            tellProgress(at: now)
        case .rendering:
            guard status.phase < .rendering else { return false }
            tellProgress(at: now)
            status.phase = .rendering
            hasRendered = true
        case .finished(let result):
            guard status.phase < .finished else { return false }
            tellProgress(at: now)
            status.phase = .finished
            status.result = result
        }
        return true
    }

    /// Ends the load with an error, unless it has ended.
    mutating func end(_ error: PipelineError, at now: ContinuousClock.Instant) -> Bool {
        guard take(.finished(.failure(error)), at: now) else { return false }
        status.isCancelled = error.isCancellation
        return true
    }

    private mutating func tellProgress(at now: ContinuousClock.Instant) {
        guard isProgressHeld else { return }
        progress = (status.received, status.expected)
        progressCount += 1
        isProgressHeld = false
        lastProgress = now
    }

    /// How much of a history one reader has been told.
    struct Place: Sendable {
        private var hasCached = false
        private var hasFetching: Bool
        private var progressCount = 0
        private var hasRendering = false
        private var hasFinished = false

        /// A reader that begins late is told the last `progress` of a fetch in its place.
        init(in history: LoadHistory) { hasFetching = history.progressCount > 0 }

        /// What comes next; nil if there is nothing yet.
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

        /// Whether there is something to tell, or all has been told.
        func isDue(in history: LoadHistory) -> Bool {
            var later = self
            return hasFinished || later.next(in: history) != nil
        }

        /// Whether `finished` has been told.
        var isAtEnd: Bool { hasFinished }
    }
}
