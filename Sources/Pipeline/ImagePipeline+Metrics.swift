import PipelineCaching
import Variants

extension ImagePipeline {
    /// Reports the counters of tiers, queues and workers (docs/metrics.md) now. The pipeline also reports them every
    /// five seconds and when it shuts down. Call this method, for example, just before metrics are scraped. It does
    /// nothing if there is no metrics backend.
    public func reportMetrics() { observe.metrics?.report(metricCounts) }

    /// The meaning of each pipeline metric, by name.
    package static var metricMeanings: [String: String] {
        Dictionary(uniqueKeysWithValues: PipelineMetric.all.map { ($0.name, $0.meaning) })
    }

    /// The counters of tiers, queues and workers.
    var metricCounts: [MetricCount] {
        tiers.tierCounters.flatMap(Self.counts) + Self.counts(memoryStatistics)
            + (workerStatistics.map(Self.counts) ?? [])
            + Self.counts(backgroundStatistics) + counts(of: workInProgress) + (fleetStatus.map(Self.counts) ?? [])
            + (secondPassStatistics.map(Self.counts) ?? [])
    }

    /// The number of look-ups of this process in the tiers behind the folder.
    package var fartherLookups:
        [(name: TierName, records: LookupCounters, originals: LookupCounters, variants: LookupCounters)]
    {
        tiers.tierCounters.filter { $0.name != .disk }.map { ($0.name, $0.records, $0.originals, $0.variants) }
    }

    /// The latest error of each tier behind the folder, by name. A tier that has answered since its error is omitted.
    package var tierProblems: [(tier: TierName, text: String)] {
        tiers.tierCounters.compactMap { tier in tier.name == .disk ? nil : tier.problem.map { (tier.name, $0) } }
    }

    /// The numbers of fetches and renders that are in progress or waiting now, and the number refused because too many
    /// were in progress or waiting.
    package var workInProgress: (fetches: Int, renders: Int, refused: Int) {
        (fetch.backlog.count, render.backlog.count, fetch.backlog.refused + render.backlog.refused)
    }

    private func counts(of work: (fetches: Int, renders: Int, refused: Int)) -> [MetricCount] {
        [
            MetricCount(.work, ["fetches"], work.fetches), MetricCount(.work, ["renders"], work.renders),
            MetricCount(.workRefused, ["fetches"], fetch.backlog.refused),
            MetricCount(.workRefused, ["renders"], render.backlog.refused),
        ]
    }

    private static func counts(_ tier: TierCounters) -> [MetricCount] {
        let name = tier.name.description
        let parts = [("record", tier.records), ("original", tier.originals), ("variant", tier.variants)]
        return parts.flatMap { part, counters in lookups(name, part, counters.hits, counters.misses) } + [
            MetricCount(.tierFailures, [name], tier.failures), MetricCount(.tierSkips, [name], tier.skips),
            MetricCount(.tierCalls, [name], tier.calls), MetricCount(.queueBytes, [name], tier.queuedBytes),
            MetricCount(.queueDrops, [name], tier.dropped),
        ]
    }

    private static func counts(_ memory: TierStatistics) -> [MetricCount] {
        let parts = [
            ("record", memory.records), ("original", memory.originals), ("variant", memory.variants),
            ("pixels", memory.pixels),
        ]
        return parts.flatMap { part, counters in
            lookups(TierName.memory.description, part, counters.hits, counters.misses) + [
                MetricCount(.memoryBytes, [part], counters.bytes),
                MetricCount(.memoryEvictions, [part], counters.evictions),
            ]
        }
    }

    private static func lookups(_ tier: String, _ part: String, _ hits: Int, _ misses: Int) -> [MetricCount] {
        [MetricCount(.lookups, [tier, part, "hit"], hits), MetricCount(.lookups, [tier, part, "miss"], misses)]
    }

    private static func counts(_ workers: WorkerStatistics) -> [MetricCount] {
        [
            ("started", workers.started), ("crashed", workers.crashed), ("killed", workers.killed),
            ("recycled", workers.recycled), ("refused", workers.refused),
        ].map { MetricCount(.workers, [$0], $1) }
    }

    private static func counts(_ fleet: FleetStatus) -> [MetricCount] {
        [
            MetricCount(.fleetConnected, [], fleet.isConnected ? 1 : 0),
            MetricCount(.fleetWaiting, [], fleet.waiting),
            MetricCount(.fleetPurges, ["told"], fleet.published), MetricCount(.fleetPurges, ["heard"], fleet.applied),
            MetricCount(.fleetPurges, ["lost"], fleet.losses),
        ]
    }

    private static func counts(_ passes: SecondPassCounters) -> [MetricCount] {
        [
            ("improved", passes.improved), ("kept", passes.kept), ("adopted", passes.adopted),
            ("failed", passes.failed),
        ].map { MetricCount(.secondPasses, [$0], $1) } + [
            MetricCount(.secondPassSeconds, [], Int(passes.milliseconds / 1000)),
            MetricCount(.secondPassBytes, [], passes.savedBytes),
        ]
    }

    private static func counts(_ background: BackgroundCounters) -> [MetricCount] {
        [
            ("started", background.started), ("succeeded", background.succeeded), ("failed", background.failed),
            ("coalesced", background.collapsed), ("refused", background.refused),
        ].map { MetricCount(.background, [$0], $1) } + [MetricCount(.backgroundRunning, [], background.running)]
    }
}

extension ImageResponse: ObservedResponse {
    var result: RequestResult { outcome == .rendered ? .rendered : forward == nil ? .hit : .fetched }
}

extension OriginalResponse: ObservedResponse {
    var result: RequestResult { handling.isHit ? .hit : .fetched }
    var key: String? { nil }
}
