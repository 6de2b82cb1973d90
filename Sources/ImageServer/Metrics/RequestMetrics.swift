package import CoreMetrics
import Synchronization

/// Counts a server's requests by route and status, and measures the time until their responses begin. Routes and
/// statuses have few values. No other part of a request becomes a label.
package final class RequestMetrics: Sendable {
    package static let requests = "image_pipeline_http_requests_total"
    package static let durations = "image_pipeline_http_request_seconds"
    package static let bytes = "image_pipeline_http_body_bytes_total"

    private struct Handles {
        var counter: Counter
        var bytes: Counter
        var timer: CoreMetrics.Timer
    }

    private let factory: any MetricsFactory
    /// The metrics by route and status.
    private let handles = Mutex<[String: [Int: Handles]]>([:])

    package init(_ factory: any MetricsFactory) { self.factory = factory }

    /// - Parameter route: The name of the route, `other` if the path belongs to no route, or `none` if the bytes
    ///   received were not a request.
    package func count(_ route: String, status: Int, bytes: Int, nanoseconds: Int64) {
        let known = handles.withLock { handles in
            if let known = handles[route]?[status] { return known }
            let labels = [("route", route), ("status", String(status))]
            let made = Handles(
                counter: Counter(label: Self.requests, dimensions: labels, factory: factory),
                bytes: Counter(label: Self.bytes, dimensions: [("route", route)], factory: factory),
                timer: CoreMetrics.Timer(label: Self.durations, dimensions: [("route", route)], factory: factory))
            handles[route, default: [:]][status] = made
            return made
        }
        known.counter.increment()
        known.bytes.increment(by: bytes)
        known.timer.recordNanoseconds(nanoseconds)
    }
}
