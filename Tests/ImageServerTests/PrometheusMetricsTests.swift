import CoreMetrics
import Synchronization
import Testing

@testable import ImageServer

@Suite struct PrometheusMetricsTests {
    @Test func `counters, gauges and durations are written as Prometheus reads them`() {
        let metrics = PrometheusMetrics()
        metrics.describe("requests_total", "what\nwas \\ asked")
        let counter = Counter(label: "requests_total", dimensions: [("route", "a\"b\\c\nd")], factory: metrics)
        counter.increment(by: 3)
        Meter(label: "bytes", dimensions: [], factory: metrics).set(12.5)
        let timer = CoreMetrics.Timer(label: "seconds", dimensions: [("stage", "fetch")], factory: metrics)
        timer.recordNanoseconds(3_000_000)
        timer.recordNanoseconds(60_000_000_000)
        let lines = metrics.text.split(separator: "\n").map(String.init)
        #expect(lines.contains("# HELP requests_total what\\nwas \\\\ asked"))
        #expect(lines.contains("# TYPE requests_total counter"))
        #expect(lines.contains("requests_total{route=\"a\\\"b\\\\c\\nd\"} 3"))
        #expect(lines.contains("# TYPE bytes gauge") && lines.contains("bytes 12.5"))
        #expect(lines.contains("# TYPE seconds histogram"))
        #expect(lines.contains("seconds_bucket{stage=\"fetch\",le=\"0.0025\"} 0"))
        #expect(lines.contains("seconds_bucket{stage=\"fetch\",le=\"0.005\"} 1"))
        #expect(lines.contains("seconds_bucket{stage=\"fetch\",le=\"30.0\"} 1"))
        #expect(lines.contains("seconds_bucket{stage=\"fetch\",le=\"+Inf\"} 2"))
        #expect(
            lines.contains("seconds_count{stage=\"fetch\"} 2") && lines.contains("seconds_sum{stage=\"fetch\"} 60.003"))
    }

    @Test func `a series is one, however often it is made, and there are only so many`() {
        let metrics = PrometheusMetrics()
        for _ in 0..<3 { Counter(label: "a.b", dimensions: [("x", "1")], factory: metrics).increment() }
        #expect(metrics.text == "# TYPE a_b counter\na_b{x=\"1\"} 3\n")
        for number in 0..<(2 * PrometheusMetrics.seriesLimit) {
            Counter(label: "many", dimensions: [("n", "\(number)")], factory: metrics).increment()
        }
        #expect(metrics.text.split(separator: "\n").count == PrometheusMetrics.seriesLimit + 2)
    }

    @Test func `routes and statuses are the only labels, whatever is asked`() {
        let metrics = PrometheusMetrics()
        let requests = RequestMetrics(metrics)
        for target in ["/variant/a/b/c", "/variants", "/x/\(Int.random(in: 0..<9))", "/", nil] {
            let route = target.map { ServerConfiguration().route(of: RequestTarget($0))?.name ?? "other" }
            requests.count(route ?? "none", status: 200, bytes: 7, nanoseconds: 1000)
        }
        let routes = metrics.text.split(separator: "\n").filter { $0.hasPrefix(RequestMetrics.requests) }
        #expect(
            routes == [
                "image_pipeline_http_requests_total{route=\"none\",status=\"200\"} 1",
                "image_pipeline_http_requests_total{route=\"other\",status=\"200\"} 2",
                "image_pipeline_http_requests_total{route=\"page\",status=\"200\"} 1",
                "image_pipeline_http_requests_total{route=\"variant\",status=\"200\"} 1",
            ])
    }
}
