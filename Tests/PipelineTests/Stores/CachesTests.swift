@testable import PipelineFetching
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// An operator's actions on the caches of a running pipeline.
@Suite(.timeLimit(.minutes(10))) struct CachesTests {
    private static func with(_ body: (CachingBench) async throws -> Void) async throws {
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
            $0.memory = MemoryBudgets(originals: 32 << 20, variants: 32 << 20)
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=600").picture()
        } _: { bench in
            try await body(bench)
        }
    }

    private static func fill(_ bench: CachingBench, _ names: Range<Int> = 0..<10) async throws {
        for name in names {
            let request = ImageRequest(.url("http://origin.test/\(name)"), recipe: try Recipe("thumbnail:\(20 + name)"))
            _ = try await bench.pipeline.respond(to: request)
        }
        await bench.pipeline.drain()
    }

    @Test func `trim leaves as many as it is told, and records`() async throws {
        try await Self.with { bench in
            try await Self.fill(bench)
            var request = TrimRequest()
            request.maxEntries = 3
            request.tiers = [.variants]
            #expect(try await bench.pipeline.trim(request).variants == 7)
            let disk = try #require(await bench.pipeline.diskStatistics())
            #expect(disk.variants.entries == 3 && disk.originals.entries == 1 && disk.records.entries == 10)
            #expect(try await bench.pipeline.trim(TrimRequest()) == PurgeResult())
        }
    }

    @Test func `trim takes ages`() async throws {
        try await Self.with { bench in
            try await Self.fill(bench)
            var request = TrimRequest()
            request.olderThan = .seconds(3_600)
            request.unusedFor = .seconds(3_600)
            #expect(try await bench.pipeline.trim(request) == PurgeResult())
            request.olderThan = .seconds(-1)
            #expect(try await bench.pipeline.trim(request).originals == 1)
        }
    }

    @Test func `removeAll empties memory and folder, also for others`() async throws {
        try await Self.with { bench in
            try await Self.fill(bench)
            let other = try await bench.another()
            let request = ImageRequest(.url("http://origin.test/0"), recipe: try Recipe("thumbnail:20"))
            _ = try await other.respond(to: request)
            let result = try await bench.pipeline.removeAll()
            #expect(result.records == 10 && result.variants == 10 && result.originals == 1)
            for pipeline in [bench.pipeline, other] { #expect(pipeline.cachedImage(for: request) == nil) }
            let disk = try #require(await bench.pipeline.diskStatistics())
            #expect(disk.variants.entries == 0 && disk.records.entries == 0)
            #expect(bench.pipeline.memoryStatistics.variants.entries == 0)
            let asked = bench.count
            #expect(try await other.respond(to: request).outcome == .rendered)
            #expect(bench.count == asked + 1)
            await other.shutdown()
        }
    }

    @Test func `without a folder memory alone is emptied, and there is nothing to trim`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=600").picture()
        } _: { bench in
            try await Self.fill(bench)
            #expect(try await bench.pipeline.trim(TrimRequest()) == PurgeResult())
            let result = try await bench.pipeline.removeAll()
            #expect(result.records == 10 && result.variants == 10 && result.originals == 1 && result.bytes > 0)
            #expect(bench.pipeline.memoryStatistics.records.entries == 0)
        }
    }

    @Test func `budgets change while it runs, down and up`() async throws {
        try await Self.with { bench in
            try await Self.fill(bench)
            let before = bench.pipeline.memoryStatistics
            let small = before.variants.bytes / 2
            bench.pipeline.setMemoryBudgets(MemoryBudgets(originals: 0, variants: small, pixels: 0))
            let memory = bench.pipeline.memoryStatistics
            #expect(memory.variants.bytes <= small && memory.variants.entries > 0 && memory.variants.budget == small)
            #expect(memory.originals.entries == 0 && memory.records.budget == 0)
            bench.pipeline.setMemoryBudgets(MemoryBudgets(originals: 1 << 30, variants: 1 << 30))
            try await Self.fill(bench)
            #expect(bench.pipeline.memoryStatistics.variants.entries == 10)
            let disk = try #require(await bench.pipeline.diskStatistics())
            let half = disk.variants.bytes / 2
            try await bench.pipeline.setDiskBudgets(originals: 1 << 30, variants: half)
            let less = try #require(await bench.pipeline.diskStatistics())
            #expect(less.variants.bytes <= half && less.variants.entries > 0 && less.variants.budget == half)
            #expect(less.originals.entries == 1)
            // Later entries keep to it too, and a larger one is filled again.
            try await Self.fill(bench, 10..<20)
            #expect(try #require(await bench.pipeline.diskStatistics()).variants.bytes <= half)
            try await bench.pipeline.setDiskBudgets(originals: 1 << 30, variants: 1 << 30)
            try await Self.fill(bench, 20..<30)
            #expect(try #require(await bench.pipeline.diskStatistics()).variants.entries >= 10)
        }
    }

    @Test func `the pipeline's policy is that of requests which do not say`() async throws {
        try await withCache {
            $0.policy = .cacheOnly
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=1").picture()
        } _: { bench in
            var request = ImageRequest(.url(CachingBench.url), recipe: try Recipe("thumbnail:20"))
            #expect(await refusal(bench.pipeline, request)?.code == .notCached)
            #expect(await bench.refusal()?.code == .notCached)
            request.policy = .protocol
            _ = try await bench.pipeline.respond(to: request)
            bench.clock.advance(100)
            request.policy = nil
            #expect(try await bench.pipeline.respond(to: request).isStale)
            #expect(try await bench.pipeline.explain(request).policy == .cacheOnly)
            #expect(bench.count == 1)
        }
    }
}
