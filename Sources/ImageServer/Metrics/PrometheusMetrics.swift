public import CoreMetrics
import Pipeline
import Synchronization

/// Collects the metrics of pipelines and sites, and writes them in the Prometheus text format, version 0.0.4. Pass the
/// same object to the pipeline and to the site, which then serves `/metrics` to operators.
///
/// ```swift
/// let metrics = PrometheusMetrics()
/// var caches = PipelineConfiguration()
/// caches.metrics = metrics
/// var server = ServerConfiguration()
/// server.metrics = metrics
/// print(metrics.text)
/// ```
///
/// This is a swift-metrics backend, so a program may also pass it to `MetricsSystem.bootstrap(_:)`. It supports
/// counters, gauges, and durations as histograms in seconds. A time series is never removed, so labels must have few
/// values. At most 10,000 series are recorded, which limits the effect of a label with too many values. Further series
/// are ignored.
public final class PrometheusMetrics: MetricsFactory {
    /// The upper bounds of the duration buckets, in seconds.
    static let buckets = [
        0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
    ]
    /// The maximum number of time series.
    static let seriesLimit = 10_000

    private enum Kind: String {
        case counter, gauge, histogram
    }

    private struct Family {
        var kind: Kind
        /// The time series, by the label string between the braces.
        var series: [String: any Series] = [:]
    }

    private struct State {
        var families: [String: Family] = [:]
        var count = 0
        var help: [String: String] = [:]
    }

    private let state = Mutex(State())

    /// Creates a backend with descriptions of the metrics of pipelines and servers.
    public init() {
        let served = [
            RequestMetrics.requests: "responses by route and status",
            RequestMetrics.durations: "time from the header of a request to the header of its response",
            RequestMetrics.bytes: "bytes in response bodies",
        ]
        let folder = Site.folderMeanings.map { (Site.folderPrefix + $0.key, "the cache folder's " + $0.value) }
        for (name, meaning) in Array(ImagePipeline.metricMeanings) + Array(served) + folder {
            describe(name, meaning)
        }
    }

    /// Sets the description of a metric, which is written in its `# HELP` line.
    public func describe(_ name: String, _ meaning: String) { state.withLock { $0.help[name] = meaning } }

    /// All metrics in the Prometheus text format, sorted by name.
    public var text: String {
        let (families, help) = state.withLock { ($0.families, $0.help) }
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            if let meaning = help[name] {
                let escaped = meaning.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
                text += "# HELP \(name) \(escaped)\n"
            }
            text += "# TYPE \(name) \(family.kind.rawValue)\n"
            for (labels, series) in family.series.sorted(by: { $0.key < $1.key }) {
                series.write(name, labels, to: &text)
            }
        }
        return text
    }

    // MARK: MetricsFactory

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(label, dimensions, .counter) { CounterSeries() }
    }

    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(label, dimensions, .gauge) { GaugeSeries() }
    }

    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        aggregate
            ? series(label, dimensions, .histogram) { HistogramSeries() }
            : series(label, dimensions, .gauge) { GaugeSeries() }
    }

    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(label, dimensions, .histogram) { HistogramSeries() }
    }

    /// Does nothing. A time series exists until the program exits.
    public func destroyCounter(_ handler: any CounterHandler) {}
    public func destroyMeter(_ handler: any MeterHandler) {}
    public func destroyRecorder(_ handler: any RecorderHandler) {}
    public func destroyTimer(_ handler: any TimerHandler) {}

    private func series<Made: Series>(
        _ label: String, _ dimensions: [(String, String)], _ kind: Kind, _ make: () -> Made
    ) -> Made {
        let name = Self.name(label)
        let labels = dimensions.map { Self.name($0.0) + "=\"" + Self.escaped($0.1) + "\"" }.joined(separator: ",")
        return state.withLock { state in
            if let known = state.families[name]?.series[labels] as? Made { return known }
            let made = make()
            // The name is used by a metric of a different kind, or there are too many series. This series is not
            // written.
            guard state.count < Self.seriesLimit, state.families[name].map({ $0.kind == kind }) ?? true else {
                return made
            }
            state.count += 1
            state.families[name, default: Family(kind: kind)].series[labels] = made
            return made
        }
    }

    private static func name(_ text: String) -> String {
        let name = String(text.map { $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "_" ? $0 : "_" })
        return name.first?.isNumber == false ? name : "_" + name
    }

    private static func escaped(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}

/// The values of a metric with one set of labels.
private protocol Series: AnyObject, Sendable {
    /// - Parameter labels: The labels, without braces.
    func write(_ name: String, _ labels: String, to text: inout String)
}

private func line(_ name: String, _ labels: String, _ value: some LosslessStringConvertible) -> String {
    labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels)} \(value)\n"
}

private final class CounterSeries: Series, CounterHandler {
    private let value = Atomic<Int64>(0)

    func increment(by amount: Int64) { value.add(amount, ordering: .relaxed) }
    func reset() { value.store(0, ordering: .relaxed) }
    func write(_ name: String, _ labels: String, to text: inout String) {
        text += line(name, labels, value.load(ordering: .relaxed))
    }
}

private final class GaugeSeries: Series, MeterHandler, RecorderHandler {
    private let value = Mutex(0.0)

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { self.value.withLock { $0 = value } }
    func increment(by amount: Double) { value.withLock { $0 += amount } }
    func decrement(by amount: Double) { value.withLock { $0 -= amount } }
    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }
    func write(_ name: String, _ labels: String, to text: inout String) {
        let value = value.withLock { $0 }
        text +=
            value == value.rounded() && abs(value) < 1e15
            ? line(name, labels, Int64(value)) : line(name, labels, value)
    }
}

private final class HistogramSeries: Series, TimerHandler, RecorderHandler {
    private struct Counts {
        /// The last element counts values above all bounds.
        var buckets = [Int](repeating: 0, count: PrometheusMetrics.buckets.count + 1)
        var sum = 0.0
    }

    private let counts = Mutex(Counts())

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) {
        let bucket = PrometheusMetrics.buckets.firstIndex { value <= $0 } ?? PrometheusMetrics.buckets.count
        counts.withLock { counts in
            counts.buckets[bucket] += 1
            counts.sum += value
        }
    }

    func write(_ name: String, _ labels: String, to text: inout String) {
        let counts = counts.withLock { $0 }
        let before = labels.isEmpty ? "" : labels + ","
        var total = 0
        for (end, count) in zip(PrometheusMetrics.buckets.map { "\($0)" } + ["+Inf"], counts.buckets) {
            total += count
            text += line(name + "_bucket", "\(before)le=\"\(end)\"", total)
        }
        text += line(name + "_sum", labels, counts.sum)
        text += line(name + "_count", labels, total)
    }
}
