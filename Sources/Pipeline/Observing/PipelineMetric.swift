/// A metric that the pipeline reports through swift-metrics. `all` lists the metrics; docs/metrics.md contains the same
/// table.
///
/// Names follow the Prometheus conventions: the unit (seconds or bytes) is part of the name, and counters end in
/// `_total`. The values of labels are few and known when the pipeline is created. They never come from a request.
struct PipelineMetric: Sendable, Hashable {
    enum Kind: String, Sendable {
        /// A value that only increases.
        case counter
        /// Durations, as a histogram or a summary, depending on the backend.
        case timer
        /// The current value.
        case gauge
    }

    let name: String
    let kind: Kind
    let labels: [String]
    /// The meaning of the metric, without the final period.
    let meaning: String

    private init(_ kind: Kind, _ name: String, _ labels: [String], _ meaning: String) {
        self.kind = kind
        self.name = "image_pipeline_" + name
        self.labels = labels
        self.meaning = meaning
    }

    static let requests = PipelineMetric(
        .timer, "request_seconds", ["result"],
        "duration of a request; `result` is hit (stored, without contact to the origin), fetched, rendered, failed or "
            + "cancelled")
    static let stages = PipelineMetric(
        .timer, "stage_seconds", ["stage"],
        "duration of a stage; `stage` is admit, look_up, fetch, render or keep")
    static let stageFailures = PipelineMetric(
        .counter, "stage_failures_total", ["stage"], "errors of a stage, except cancellation")
    static let lookups = PipelineMetric(
        .counter, "tier_lookups_total", ["tier", "part", "result"],
        "completed look-ups in a tier; `part` is record, original, variant or (in memory) pixels, `result` is hit or "
            + "miss")
    static let tierFailures = PipelineMetric(
        .counter, "tier_failures_total", ["tier"], "failed calls of a tier, and changes that it could not store")
    static let tierSkips = PipelineMetric(
        .counter, "tier_skips_total", ["tier"],
        "calls not made because the tier keeps failing or has too many calls in progress")
    static let tierCalls = PipelineMetric(
        .gauge, "tier_calls", ["tier"], "calls of a tier in progress; 0 for the cache folder, which has no limit")
    static let queueBytes = PipelineMetric(
        .gauge, "queue_bytes", ["tier"], "bytes waiting to be stored in a tier, or being written")
    static let queueDrops = PipelineMetric(
        .counter, "queue_dropped_total", ["tier"], "changes dropped because a tier's queue was full")
    static let memoryBytes = PipelineMetric(
        .gauge, "memory_bytes", ["part"], "bytes in the memory tier, including overhead")
    static let memoryEvictions = PipelineMetric(
        .counter, "memory_evictions_total", ["part"], "entries evicted from the memory tier")
    static let workers = PipelineMetric(
        .counter, "worker_events_total", ["cause"],
        "events of render workers; `cause` is started, crashed, killed, recycled or refused (a quarantined render); "
            + "absent with in-process rendering")
    static let background = PipelineMetric(
        .counter, "background_validations_total", ["event"],
        "background validations; `event` is started, succeeded, failed, coalesced or refused")
    static let backgroundRunning = PipelineMetric(
        .gauge, "background_validations", [], "background validations in progress")

    static let secondPasses = PipelineMetric(
        .counter, "second_passes_total", ["result"],
        "second versions of variants; `result` is improved (replaced the first), kept (no smaller version), "
            + "adopted (found in a shared folder or bucket) or failed")
    static let secondPassSeconds = PipelineMetric(
        .counter, "second_pass_cpu_seconds_total", [], "CPU time of second passes, in whole seconds")
    static let secondPassBytes = PipelineMetric(
        .counter, "second_pass_saved_bytes_total", [],
        "bytes by which variants were shorter because of a second pass, summed over requests, including those answered without a body"
    )

    static let work = PipelineMetric(
        .gauge, "work", ["kind"], "work in progress and waiting; `kind` is fetches or renders")
    static let workRefused = PipelineMetric(
        .counter, "work_refused_total", ["kind"], "work refused because the `queue` limit was reached")

    static let fleetConnected = PipelineMetric(
        .gauge, "fleet_connected", [],
        "1 while this machine receives other machines' purges, otherwise 0; absent without a fleet")
    static let fleetWaiting = PipelineMetric(
        .gauge, "fleet_waiting", [], "purges not yet published to the fleet")
    static let fleetPurges = PipelineMetric(
        .counter, "fleet_purges_total", ["event"],
        "purges between machines; `event` is told (published by this machine), heard (received from another machine and "
            + "applied) or lost (some may have been missed, so all entries are validated once)")

    static let all = [
        requests, stages, stageFailures, lookups, tierFailures, tierSkips, tierCalls, queueBytes, queueDrops,
        memoryBytes, memoryEvictions, workers, background, backgroundRunning,
        secondPasses, secondPassSeconds, secondPassBytes, work, workRefused, fleetConnected, fleetWaiting, fleetPurges,
    ]
}

/// The value of one series of a counter or gauge, as counted by the tier, queue or pool that owns it.
struct MetricCount: Sendable {
    struct Series: Sendable, Hashable {
        let metric: PipelineMetric
        /// The values of the metric's labels, in the order of `labels`.
        let values: [String]

        var dimensions: [(String, String)] { Array(zip(metric.labels, values)) }
    }

    let series: Series
    let value: Int

    init(_ metric: PipelineMetric, _ values: [String], _ value: Int) {
        series = Series(metric: metric, values: values)
        self.value = value
    }
}
