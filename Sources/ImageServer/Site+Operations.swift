import CoreMetrics
import HTTPCaching
import Pipeline
import PipelineSupport
import Synchronization
import Variants

/// Controls the response of `/ready`, which reports to load balancers whether the server accepts work
/// (`ServerConfiguration.readiness`). `/health` only reports that the server is running.
///
/// ```swift
/// let readiness = Readiness()
/// var configuration = ServerConfiguration()
/// configuration.readiness = readiness
/// readiness.end()  // Before the program stops: `/ready` responds with 503.
/// ```
public final class Readiness: Sendable {
    private let value = Atomic(true)

    /// Creates the state of a server that is ready.
    public init() {}

    /// Whether the server accepts work. True until `end` is called.
    public var isReady: Bool { value.load(ordering: .acquiring) }

    /// Makes `/ready` respond with 503, so that load balancers stop sending requests.
    public func end() { value.store(false, ordering: .releasing) }
}

/// Routes for health, readiness and metrics.
extension Site {
    func health() -> ServerResponse { text("ok\n") }

    /// Whether a target is `/health` or `/ready`. These are served regardless of the number of connected clients.
    package static func isProbe(_ target: String) -> Bool {
        let name = Operation.Name(RequestTarget(target))
        return name == .health || name == .ready
    }

    /// Responds with 200, or with 503 after the server has begun to stop. Operators also see the current load.
    func ready(_ request: ServerRequest) -> ServerResponse {
        let isReady = settings.readiness.isReady
        var object = JSONText()
        object.add("ready", isReady)
        if isOperator(request) {
            let (work, workers) = (pipeline.workInProgress, pipeline.workerStatistics)
            object.add("fetches", work.fetches)
            object.add("renders", work.renders)
            object.add("refused", work.refused)
            if let fleet = pipeline.fleetStatus {
                object.add("fleet") { inner in
                    inner.add("connected", fleet.isConnected)
                    inner.add("purge", fleet.number)
                    inner.add("waiting", fleet.waiting)
                    inner.add("losses", fleet.losses)
                }
            }
            let problems = pipeline.tierProblems
            if !problems.isEmpty {
                object.add("problems") { inner in for (tier, text) in problems { inner.add(tier.description, text) } }
            }
            if let workers {
                object.add("workers") { inner in
                    inner.add("started", workers.started)
                    inner.add("crashed", workers.crashed)
                    inner.add("killed", workers.killed)
                }
            }
        }
        return text(object.closed + "\n", type: "application/json", status: isReady ? 200 : 503)
    }

    /// Responds with the metrics of the complete program in the Prometheus text format.
    func metrics(_ request: ServerRequest) async throws(Problem) -> ServerResponse {
        guard isOperator(request) else {
            throw Problem(
                .forbidden,
                "metrics are available to clients on this machine, at the `server.adminListen` address, and with the `adminToken`"
            )
        }
        guard let metrics = settings.metrics else {
            throw Problem(.unknownPath, "metrics are turned off on this server (`server.metrics`)")
        }
        pipeline.reportMetrics()
        if let disk = await pipeline.diskStatistics() {
            report(
                metrics, "disk", [("original", disk.originals), ("variant", disk.variants), ("record", disk.records)])
        }
        return text(metrics.text + ProcessMetrics.text, type: "text/plain; version=0.0.4; charset=utf-8")
    }

    static let folderPrefix = "image_pipeline_folder_"
    static let folderMeanings = [
        "entries": "entries", "bytes": "bytes", "budget_bytes": "budget", "evictions": "number of evictions",
        "saved_bytes": "bytes served from hits", "saved_seconds": "time saved by hits",
    ]

    /// Records the counters of the cache folder, summed over all processes that use it.
    private func report(_ metrics: PrometheusMetrics, _ tier: String, _ parts: [(String, StoreCounters)]) {
        for (part, counters) in parts {
            let values: [(String, Double)] = [
                ("entries", Double(counters.entries)), ("bytes", Double(counters.bytes)),
                ("budget_bytes", Double(counters.budget)), ("evictions", Double(counters.evictions)),
                ("saved_bytes", Double(counters.bytesSaved)), ("saved_seconds", counters.millisecondsSaved / 1000),
            ]
            for (name, value) in values {
                Meter(
                    label: Self.folderPrefix + name, dimensions: [("part", part)], factory: metrics
                ).set(value)
            }
        }
    }

    private func text(
        _ text: String, type: String = "text/plain; charset=utf-8", status: Int = 200
    ) -> ServerResponse {
        ServerResponse(status: status, fields: ServerResponse.ownFields(type, now: now()), body: Array(text.utf8))
    }
}
