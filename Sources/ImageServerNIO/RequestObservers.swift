package import ImageServer

/// The logs and metrics that record each request when its response begins.
package struct RequestObservers: Sendable {
    /// The log with one line per request, or nil if requests are not logged.
    package var log: RequestLog?
    /// The log of the `server.accessLog` setting, or nil if it is not set.
    package var accessLog: RequestLog?
    /// The request metrics, or nil if requests are not counted.
    package var metrics: RequestMetrics?

    package init(log: RequestLog? = nil, accessLog: RequestLog? = nil, metrics: RequestMetrics? = nil) {
        self.log = log
        self.accessLog = accessLog
        self.metrics = metrics
    }

    /// Whether any observer measures requests.
    var isActive: Bool { log != nil || accessLog != nil || metrics != nil }

    /// Records a request.
    ///
    /// - Parameters:
    ///   - isRequest: Whether the received bytes were a valid request.
    ///   - duration: The time from the request's headers to the response's headers.
    ///   - entry: A closure that returns the log entry. It is called only if there is a log.
    func record(
        _ answer: RequestLog.Response, isRequest: Bool, _ duration: Duration, entry: () -> RequestLog.Entry
    ) {
        metrics?.count(
            answer.route?.name ?? (isRequest ? "other" : "none"), status: answer.status, bytes: answer.bytes,
            nanoseconds: Int64(duration / .nanoseconds(1)))
        guard log != nil || accessLog != nil else { return }
        let entry = entry()
        log?.write(entry)
        accessLog?.write(entry)
    }

    /// Waits until all entries are written, but no longer than `timeout`.
    func flush(timeout: Duration) async {
        let logs = [log, accessLog].compactMap { $0 }
        _ = await Timeout.run(timeout) { for log in logs { await log.flush() } }
    }
}
