/// How an `ImageLoader` lets loads begin.
public struct LoaderConfiguration: Sendable {
    /// Which of equally urgent loads begins first.
    public enum Order: Sendable, Hashable {
        /// The one that was asked for first.
        case oldestFirst
        /// The one that was asked for last: what a list shows after it was scrolled.
        case newestFirst
    }

    /// Loads at a time; at least 1. Default 16, as many transfers as a pipeline has at a time (`fetch.slots`). One that
    /// waits for its `delay` is one of them, and one that was cancelled or superseded is not, though its work may go on.
    public var loads = 16
    /// Default `oldestFirst`.
    public var order = Order.oldestFirst
    /// Loads that wait or run, prefetches aside; a new one ends the oldest that waits, or else the oldest that runs, with
    /// `superseded`. nil, the default: no bound.
    public var window: Int?
    /// The share of `loads` that prefetches may have, 0…1; at least one. Default a half.
    public var prefetchShare = 0.5

    public init() {}
}

/// What an `ImageLoader` has to do and has done.
public struct LoaderStatistics: Sendable, Hashable {
    /// Requests that wait; the same one twice is one. Prefetches included, as in `running`.
    public var waiting = 0
    /// Requests that run.
    public var running = 0
    /// Those of both that are only prefetched.
    public var prefetches = 0
    /// Requests that have ended.
    public var ended = 0
    /// Those of them that newer ones took the place of.
    public var superseded = 0
    /// Whether nothing new begins.
    public var isSuspended = false
}
