package import CoreMetrics
import Synchronization

/// Counts the requests of a server by route and status, and how long their answers took to begin. A route and a status
/// have few values; anything else a client sends is no label.
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
    /// By route and status.
    private let handles = Mutex<[String: [Int: Handles]]>([:])

    package init(_ factory: any MetricsFactory) { self.factory = factory }

    package func count(_ target: String?, status: Int, bytes: Int, nanoseconds: Int64) {
        let route = target.map { RouteName($0)?.rawValue ?? "other" } ?? "none"
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
