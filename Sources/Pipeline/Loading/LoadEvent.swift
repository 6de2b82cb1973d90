/// Reports a step of a load, in the order of the cases. Read the events from `LoadTask.events`.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// for await event in pipeline.load(ImageRequest(.url("https://example.org/photo.jpg"))).events {
///     switch event {
///     case .cached(let image): print("show", image.isStale ? "for now" : "")
///     case .finished(.failure(let error)): print("show a placeholder:", error)
///     default: break
///     }
/// }
/// ```
///
/// Each event occurs at most once, except `progress`.
public enum LoadEvent: Sendable {
    /// A stored picture is available, fresh or stale (`ImageResponse.isStale`), before the origin has been contacted.
    case cached(ImageResponse)
    /// The original is being fetched, by this load or by another load that shares the work.
    case fetching(hadCached: Bool)
    /// The number of body bytes received so far, and the number that the origin announced. Values are reported at most
    /// five times per second. The last value is always reported.
    case progress(received: Int, expected: Int?)
    /// The variant is being rendered, or is waiting for a renderer.
    case rendering
    /// The load has finished, with a response or an error.
    case finished(Result<ImageResponse, PipelineError>)
}

/// Describes the state of a load at one moment, for programs that poll instead of reading events. Read it from
/// `LoadTask.status`.
public struct LoadStatus: Sendable {
    /// The phase of a load.
    public enum Phase: Int, Sendable, Hashable, Comparable {
        /// So far, only the caches have been queried.
        case waiting
        case fetching, rendering, finished

        /// Orders phases chronologically.
        public static func < (left: Phase, right: Phase) -> Bool { left.rawValue < right.rawValue }
    }

    /// The current phase.
    public package(set) var phase = Phase.waiting
    /// The number of bytes of the original received so far.
    public package(set) var received = 0
    /// The number of bytes that the origin announced, or nil if unknown.
    public package(set) var expected: Int?
    /// The stored picture that can be shown immediately, or nil if no picture was stored.
    public package(set) var cached: ImageResponse?
    /// The result of the load, or nil until it has finished.
    public package(set) var result: Result<ImageResponse, PipelineError>?
    /// Whether the load was cancelled, by `cancel()` or because the last task that was waiting for it was cancelled.
    public package(set) var isCancelled = false

    package init() {}
}
