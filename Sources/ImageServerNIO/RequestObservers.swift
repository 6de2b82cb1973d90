package import ImageServer

/// The logs and the metrics, which record each request when its answer begins.
package struct RequestObservers: Sendable {
    /// Gets a line for each; nil if requests are not logged.
    package var log: RequestLog?
    /// The same for `server.accessLog`.
    package var accessLog: RequestLog?
    /// Counts them; nil if there are no metrics.
    package var metrics: RequestMetrics?

    package init(log: RequestLog? = nil, accessLog: RequestLog? = nil, metrics: RequestMetrics? = nil) {
        self.log = log
        self.accessLog = accessLog
        self.metrics = metrics
    }

    /// Whether anything is to be measured.
    var isActive: Bool { log != nil || accessLog != nil || metrics != nil }

    /// - Parameters:
    ///   - duration: from the head of the request to the answer's.
    ///   - entry: evaluated only if there is a log.
    func record(
        _ target: String?, status: Int, bytes: Int, _ duration: Duration, entry: () -> RequestLog.Entry
    ) {
        metrics?.count(target, status: status, bytes: bytes, nanoseconds: Int64(duration / .nanoseconds(1)))
        guard log != nil || accessLog != nil else { return }
        let entry = entry()
        log?.write(entry)
        accessLog?.write(entry)
    }

    /// Returns when everything recorded is written, or its readers have had time to take it.
    func flush(patience: Duration) async {
        let logs = [log, accessLog].compactMap { $0 }
        _ = await Patience.waits(patience) { for log in logs { await log.flush() } }
    }
}
