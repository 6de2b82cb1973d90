import Glibc
import InMemoryLogging
import InMemoryTracing
import Logging
import MetricsTestKit
import PipelineCaching
import PipelineFetching
import PipelineService
import ServiceLifecycle
import TestSupport
import Testing
import Tracing
import Variants

@testable import Pipeline

private let fresh: KeyValuePairs<String, String> = [
    "Content-Type": "image/jpeg", "Cache-Control": "max-age=600",
]

struct MetricsTests {
    @Test func `docs metrics md holds the table of the metrics`() {
        let rows = PipelineMetric.all.map { metric in
            let labels = metric.labels.map { "`\($0)`" }.joined(separator: ", ")
            return "| `\(metric.name)` | \(metric.kind.rawValue) | \(labels) | \(metric.meaning) |"
        }
        let table = (["| metric | kind | labels | what it counts or measures |", "|---|---|---|---|"] + rows)
            .joined(separator: "\n")
        #expect(file("docs/metrics.md").contains(table), "replace the table by:\n\(table)")
    }

    @Test func `every metric of the table is reported, with the labels it declares`() async throws {
        let metrics = TestMetrics()
        try await withPipeline({
            $0.metrics = metrics
            $0.rendering.renderer = nil
            var workers = WorkerConfiguration()
            workers.maxConcurrentRenders = 1
            $0.rendering.isolation = .workers(workers)
            // Nothing listens there, so what is stored is validated before it answers.
            $0.fleet = try? FleetConfiguration(redis: "redis://127.0.0.1:1")
        }) { _ in
            picture("night-tiny.jpg", fresh)
        } _: { bench, pipeline in
            #expect(try await pipeline.respond(to: bench.request()).outcome == .rendered)
            #expect(try await pipeline.respond(to: bench.request()).outcome == .memory)
            await pipeline.drain()
            let disk = try #require(pipeline.tiers.tierCounters.first)
            #expect([disk.records, disk.originals, disk.variants].allSatisfy { $0.hits == 0 }, "\(disk)")
            #expect(disk.records.misses == 1 && disk.variants.misses == 1)
            bench.answers { _ in .response(404, [:], body: []) }
            _ = await refusal(pipeline, try bench.request("/missing.jpg"))
            await pipeline.drain()
            pipeline.reportMetrics()
        }
        let timers = [PipelineMetric.requests, .stages].map(\.name)
        for metric in PipelineMetric.all where metric.kind == .counter {
            let counters = metrics.counters(label: metric.name)
            #expect(!counters.isEmpty, "\(metric.name)")
            for counter in counters { #expect(counter.dimensions.map(\.0) == metric.labels) }
        }
        for metric in PipelineMetric.all where metric.kind == .gauge {
            #expect(!metrics.meters(label: metric.name).isEmpty, "\(metric.name)")
        }
        #expect(PipelineMetric.all.filter { $0.kind == .timer }.map(\.name) == timers)
        for result in ["fetched", "rendered", "failed"] {
            #expect(try metrics.expectTimer(timers[0], [("result", result)]).values.count == 1, "\(result)")
        }
        for (stage, runs) in [("admit", 3), ("look_up", 5), ("fetch", 2), ("render", 1), ("keep", 2)] {
            #expect(try metrics.expectTimer(timers[1], [("stage", stage)]).values.count >= runs, "\(stage)")
        }
        #expect(metrics.counterTotal(label: PipelineMetric.workers.name, dimensions: [("cause", "started")]) == 1)
        let lookups = PipelineMetric.lookups.name
        let memoryHits = [("tier", "memory"), ("part", "variant"), ("result", "hit")]
        #expect(metrics.counterTotal(label: lookups, dimensions: memoryHits) == 1)
        #expect(metrics.counterTotal(label: lookups, dimensions: [("tier", "disk"), ("result", "miss")]) > 0)
        #expect(try metrics.expectMeter(PipelineMetric.queueBytes.name, [("tier", "disk")]).values.last == 0)
    }

    @Test func `decoding for display is timed as a render, explaining as a look-up, a load from memory as a hit`()
        async throws
    {
        let metrics = TestMetrics()
        try await withPipeline({ $0.metrics = metrics }) { _ in
            picture("night-tiny.jpg", fresh)
        } _: { bench, pipeline in
            func runs(_ stage: String) -> Int {
                metrics.timers(label: PipelineMetric.stages.name).filter { $0.dimensions.contains { $0.1 == stage } }
                    .reduce(0) { $0 + $1.values.count }
            }
            _ = try await pipeline.respond(to: bench.request())
            let (renders, lookUps) = (runs("render"), runs("look_up"))
            _ = try await pipeline.pixels(for: bench.request())
            #expect(runs("render") == renders + 1)
            let request = runs("look_up") - lookUps
            _ = try await pipeline.explain(bench.request())
            #expect(runs("look_up") == lookUps + request + 1)
            func hits() throws -> Int {
                try metrics.expectTimer(PipelineMetric.requests.name, [("result", "hit")]).values.count
            }
            let before = try hits()
            _ = try await pipeline.load(bench.request()).response
            #expect(try hits() == before + 1)
            #expect(runs("look_up") == lookUps + request + 1)
        }
    }

    @Test func `a counter reports what was counted since the last report`() {
        let metrics = TestMetrics()
        let handles = MetricHandles(metrics)
        for value in [3, 5, 5] { handles.report([MetricCount(.queueDrops, ["disk"], value)]) }
        let counter = metrics.counters(label: PipelineMetric.queueDrops.name)
        #expect(counter.count == 1 && counter[0].values == [3, 2, 0])
    }

    @Test func `a pipeline in a program without metrics and tracer has neither`() async throws {
        let pipeline = try ImagePipeline()
        #expect(pipeline.observe.metrics == nil && pipeline.observe.traceFields.isEmpty)
        await pipeline.shutdown()
    }
}

struct TracingTests {
    @Test func `each stage is a span within the request's, in running order`() async throws {
        let tracer = InMemoryTracer()
        try await withPipeline({ $0.tracer = tracer }) { _ in
            picture("night-tiny.jpg", fresh)
        } _: { bench, pipeline in
            _ = try await pipeline.respond(to: bench.request())
            let spans = tracer.popFinishedSpans()
            let names = ["admit", "look_up", "fetch", "keep", "look_up", "render", "keep", "request"]
            #expect(spans.map(\.operationName) == names.map { "image_pipeline." + $0 })
            let request = try #require(spans.last)
            #expect(request.parentSpanID == nil)
            #expect(spans.dropLast().allSatisfy { $0.parentSpanID == request.spanID })

            _ = try await pipeline.respond(to: bench.request())
            let hit = ["admit", "look_up", "look_up", "request"].map { "image_pipeline." + $0 }
            #expect(tracer.popFinishedSpans().map(\.operationName) == hit)
        }
    }

    @Test func `a failing stage marks its span and the request's`() async throws {
        let tracer = InMemoryTracer()
        try await withPipeline({ $0.tracer = tracer }) { _ in
            .response(200, fresh, body: Array("no picture".utf8))
        } _: { bench, pipeline in
            var request = try bench.request()
            request.policy = .cacheOnly
            _ = await refusal(pipeline, request)
            bench.origin.stop()
            request.policy = .protocol
            _ = await refusal(pipeline, request)
            let failed = tracer.finishedSpans.filter { $0.status?.code == .error }.map(\.operationName)
            #expect(failed == ["request", "fetch", "request"].map { "image_pipeline." + $0 })
        }
    }

    @Test(arguments: [true, false])
    func `the trace context reaches only an origin that asks for it, redirected to or not`(asks: Bool) async throws {
        let other = try LoopbackOrigin { _ in picture("night-tiny.jpg", fresh) }
        defer { other.stop() }
        let target = other.url("/b.jpg")
        let tracer = InMemoryTracer()
        let bench = try PipelineBench { _ in .response(302, ["Location": target], body: []) }
        defer { bench.origin.stop() }
        let asking = asks ? bench.origin : other
        let pipeline = try bench.pipeline {
            $0.tracer = tracer
            var settings = HostSettings()
            settings.sendsTraceContext = true
            let url = asking.url("/")
            if let origin = try? HostOrigin(String(url.dropLast())) { $0.fetch.hosts = [origin: settings] }
        }
        #expect(pipeline.fetch.traceFields().isEmpty)
        _ = try await pipeline.respond(to: bench.request())
        await pipeline.shutdown()
        let fetch = try #require(tracer.finishedSpans.first { $0.operationName == "image_pipeline.fetch" })
        for origin in [bench.origin, other] {
            let request = try #require(origin.requests.first)
            #expect(request[InMemoryTracer.spanIDKey] == (origin === asking ? fetch.spanID : nil))
        }
    }
}

struct LoggingTests {
    @Test func `requests are logged at debug with source, key and stage, and without credentials`() async throws {
        var log = InMemoryLogHandler()
        log.logLevel = .trace
        let (handler, tracer) = (log, InMemoryTracer())
        try await withPipeline({
            $0.logger = Logger(label: "test") { _ in handler }
            $0.tracer = tracer
        }) { request in
            request.path.hasPrefix("/a") ? picture("night-tiny.jpg", fresh) : .response(500, [:], body: [])
        } _: { bench, pipeline in
            func secret(_ path: String) -> ImageRequest {
                let url = bench.origin.url(path).replacing("http://", with: "http://user:geheim@")
                return ImageRequest(.url(url), recipe: try? Recipe("thumbnail:40"))
            }
            let answer = try await pipeline.respond(to: secret("/a.jpg"))
            _ = await refusal(pipeline, secret("/b.jpg"))
            _ = await refusal(pipeline, ImageRequest(.url("http://user:geheim@[bad/c.jpg")))
            let entries = log.entries
            #expect(entries.count == 3 && entries.allSatisfy { $0.level == .debug })
            #expect(entries[0].metadata["source"] == "\(bench.origin.url("/a.jpg"))")
            #expect(entries[0].metadata["key"] == .string(try #require(answer.key)))
            #expect(entries[0].metadata["result"] == "rendered")
            #expect(entries[1].metadata["error"] == "fetchFailed" && entries[2].metadata["stage"] == "admit")
            var text = ""
            dump(entries, to: &text)
            dump(tracer.finishedSpans.map { ("\($0.attributes)", "\($0.errors)", $0.status) }, to: &text)
            #expect(!text.contains("geheim"))
        }
    }

    @Test func `a program that does not log at debug gets no line for a request`() async throws {
        let log = InMemoryLogHandler()
        try await withPipeline({ $0.logger = Logger(label: "test") { _ in log } }) { _ in
            picture("night-tiny.jpg", fresh)
        } _: { bench, pipeline in
            _ = try await pipeline.respond(to: bench.request())
        }
        #expect(log.entries.isEmpty)
    }
}

struct ServiceTests {
    @Test func `a cancelled service shuts the pipeline down`() async throws {
        let bench = try PipelineBench { _ in picture("night-tiny.jpg", fresh) }
        defer { bench.origin.stop() }
        let pipeline = try bench.pipeline()
        let service = Task { try await pipeline.run() }
        _ = try await pipeline.respond(to: bench.request())
        service.cancel()
        try await service.value
        // The answers before have been stored.
        let later = try bench.pipeline()
        #expect(try await later.respond(to: bench.request()).outcome == .disk)
        await later.shutdown()
    }

    @Test func `a group that shuts down gracefully shuts the pipeline down`() async throws {
        let bench = try PipelineBench { _ in picture("night-tiny.jpg", fresh) }
        defer { bench.origin.stop() }
        let pipeline = try bench.pipeline()
        let group = ServiceGroup(services: [pipeline], logger: Logger(label: "test") { _ in InMemoryLogHandler() })
        let running = Task { try await group.run() }
        _ = try await pipeline.respond(to: bench.request())
        await group.triggerGracefulShutdown()
        try await running.value
        #expect(await refusal(pipeline, try bench.request("/other.jpg")) != nil)
    }
}

private func file(_ name: String) -> String { String(decoding: sample("../" + name), as: UTF8.self) }
