package import ImageServer

/// The log and the metrics, which record each request when its answer begins.
package struct RequestObservers: Sendable {
    /// Gets a line for each; nil if requests are not logged.
    package var log: RequestLog?
    /// Counts them; nil if there are no metrics.
    package var metrics: RequestMetrics?

    package init(log: RequestLog? = nil, metrics: RequestMetrics? = nil) {
        self.log = log
        self.metrics = metrics
    }

    /// Whether anything is to be measured.
    var isActive: Bool { log != nil || metrics != nil }
}
