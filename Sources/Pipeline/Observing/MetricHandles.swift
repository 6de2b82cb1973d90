import CoreMetrics
import Synchronization

/// The handles of the pipeline's metrics, each created once.
///
/// Requests and stages are timed while they run. Tiers, queues and workers count everything else already, without
/// depending on a metrics API. Their counters are read every few seconds, and the differences are reported.
final class MetricHandles: Sendable {
    private enum Handle {
        case counter(Counter)
        case gauge(Meter)
    }

    private struct Reported {
        var handle: Handle
        var value = 0
    }

    private let factory: any MetricsFactory
    private let requests: [RequestResult: CoreMetrics.Timer]
    private let stages: [Observer.Stage: CoreMetrics.Timer]
    private let failures: [Observer.Stage: Counter]
    private let reported = Mutex<[MetricCount.Series: Reported]>([:])
    private let task = Mutex<Task<Void, Never>?>(nil)

    init(_ factory: any MetricsFactory) {
        self.factory = factory
        func timer(_ metric: PipelineMetric, _ value: String) -> CoreMetrics.Timer {
            CoreMetrics.Timer(label: metric.name, dimensions: [(metric.labels[0], value)], factory: factory)
        }
        requests = Self.table(RequestResult.allCases) { timer(.requests, $0.rawValue) }
        stages = Self.table(Observer.Stage.allCases) { timer(.stages, $0.rawValue) }
        failures = Self.table(Observer.Stage.allCases) {
            Counter(label: PipelineMetric.stageFailures.name, dimensions: [("stage", $0.rawValue)], factory: factory)
        }
    }

    deinit { task.withLock { $0 }?.cancel() }

    private static func table<Key: Hashable, Value>(_ keys: [Key], _ make: (Key) -> Value) -> [Key: Value] {
        Dictionary(uniqueKeysWithValues: keys.map { ($0, make($0)) })
    }

    func record(_ result: RequestResult, _ duration: Duration) {
        requests[result]?.recordNanoseconds(duration.nanoseconds)
    }

    func record(_ stage: Observer.Stage, _ duration: Duration, hasFailed: Bool) {
        stages[stage]?.recordNanoseconds(duration.nanoseconds)
        if hasFailed { failures[stage]?.increment() }
    }

    /// Reports counters and gauges immediately and then periodically, until `counts` returns nil or `stop()` is called.
    func start(every interval: Duration, _ counts: @escaping @Sendable () -> [MetricCount]?) {
        guard let first = counts() else { return }
        report(first)
        let reporter = Task(priority: .utility) { [weak self] in
            // The sleep throws once the task is cancelled.
            while (try? await Task.sleep(for: interval)) != nil, let now = counts() { self?.report(now) }
        }
        task.withLock { $0 = reporter }
    }

    func stop() { task.withLock { $0 }?.cancel() }

    /// Sets gauges, and increments counters by what has been counted since the last report.
    func report(_ counts: [MetricCount]) {
        reported.withLock { reported in
            for count in counts {
                var entry = reported[count.series] ?? Reported(handle: handle(of: count.series))
                switch entry.handle {
                case .counter(let counter): counter.increment(by: max(0, count.value - entry.value))
                case .gauge(let gauge): gauge.set(count.value)
                }
                entry.value = count.value
                reported[count.series] = entry
            }
        }
    }

    private func handle(of series: MetricCount.Series) -> Handle {
        let name = series.metric.name
        return switch series.metric.kind {
        case .gauge: .gauge(Meter(label: name, dimensions: series.dimensions, factory: factory))
        default: .counter(Counter(label: name, dimensions: series.dimensions, factory: factory))
        }
    }
}

extension Duration {
    fileprivate var nanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
