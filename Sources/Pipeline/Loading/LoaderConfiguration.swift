/// Configures how many loads an `ImageLoader` runs, and in which order. Pass it to `ImageLoader.init(_:_:)`.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// var configuration = LoaderConfiguration()
/// configuration.maxConcurrentLoads = 4
/// configuration.newestFirst = true
/// configuration.maxWaiting = 12
/// let loader = ImageLoader(pipeline, configuration)
/// ```
public struct LoaderConfiguration: Sendable, Hashable {
    /// The number of concurrent loads, which is at least 1. Defaults to 16, the number of concurrent transfers of a
    /// pipeline (`fetch.maxConcurrentTransfers`). A load that waits for its `delay` is counted. A load that was
    /// cancelled or superseded is not counted, although its work may continue.
    public var maxConcurrentLoads = 16
    /// Whether, among loads with the same priority, the most recently requested load begins first. This suits a list
    /// that scrolls. If false, the default, the first requested load begins first.
    public var newestFirst = false
    /// The maximum number of loads waiting or running, excluding prefetches. A new load beyond this limit supersedes
    /// the oldest waiting load, or the oldest running load if none is waiting. If nil, the default, there is no limit.
    public var maxWaiting: Int?
    /// The fraction of `maxConcurrentLoads` that prefetches may use, 0…1. Prefetches may always use at least one load.
    /// Defaults to 0.5.
    public var prefetchShare = 0.5

    /// Creates a configuration with the defaults.
    public init() {}
}

/// Counts the waiting, running and finished loads of an `ImageLoader`. Read it from `ImageLoader.statistics`.
public struct LoaderStatistics: Sendable, Hashable {
    /// The number of waiting requests, including prefetches. Equal requests count once.
    public var waiting = 0
    /// The number of running requests, including prefetches. Equal requests count once.
    public var running = 0
    /// The number of waiting and running requests that are only prefetched.
    public var prefetches = 0
    /// The number of requests that have ended.
    public var ended = 0
    /// The number of ended requests that were superseded by newer ones.
    public var superseded = 0
    /// Whether the loader is suspended and starts no loads.
    public var isSuspended = false
}
