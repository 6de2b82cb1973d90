/// What happens in one load, in this order; each at most once, but `progress`.
public enum LoadEvent: Sendable {
    /// A stored picture is there, stale or not (`ImageResponse.isStale`), before the origin is asked.
    case cached(ImageResponse)
    /// The original is being obtained, by this load or another that it shares the work of.
    case fetching(hadCached: Bool)
    /// Bytes of the body received so far, and how many its origin announced; at most five a second, and the last.
    case progress(received: Int, expected: Int?)
    /// The variant is being rendered, or waits for that.
    case rendering
    /// The load has ended.
    case finished(Result<ImageResponse, PipelineError>)
}

/// What is known of a load at one moment.
public struct LoadStatus: Sendable {
    /// How far a load is.
    public enum Phase: Int, Sendable, Hashable, Comparable {
        /// Nothing but the caches has been asked.
        case waiting
        case fetching, rendering, finished

        /// Orders by what comes first.
        public static func < (left: Phase, right: Phase) -> Bool { left.rawValue < right.rawValue }
    }

    /// How far it is.
    public package(set) var phase = Phase.waiting
    /// Bytes of the original received so far.
    public package(set) var received = 0
    /// How many were announced; nil if that is unknown.
    public package(set) var expected: Int?
    /// The stored picture that could be shown at once; nil if there was none.
    public package(set) var cached: ImageResponse?
    /// How it ended; nil until then.
    public package(set) var result: Result<ImageResponse, PipelineError>?
    /// Whether `cancel()` ended it, or the cancellation of the last task that waited for it.
    public package(set) var isCancelled = false

    package init() {}
}
