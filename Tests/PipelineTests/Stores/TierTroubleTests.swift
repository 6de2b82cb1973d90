import PipelineSupport
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline
@testable import PipelineCaching

/// A tier that never answers, and notes how many of its calls have not ended. It lets go of a call that is cancelled.
private final class SilentTier: CacheTier {
    let name = TierName("silent")
    let calls = Atomic<Int>(0)
    let inProgress = Atomic<Int>(0)
    let ended = Gate()
    /// Whether calls go on although they are cancelled.
    private let ignoresCancellation: Bool

    init(ignoresCancellation: Bool = false) { self.ignoresCancellation = ignoresCancellation }

    private func wait() async throws(StoreError) -> Never {
        calls.add(1, ordering: .relaxed)
        inProgress.add(1, ordering: .relaxed)
        let gate = Gate()
        let ended = ended
        if ignoresCancellation {
            await Task { try? await ended.pass() }.value
        } else {
            // Ends only if the task is cancelled.
            try? await gate.pass()
        }
        inProgress.subtract(1, ordering: .relaxed)
        throw StoreError(.io, "given up")
    }

    func find(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry? { try await wait() }
    func store(_ changes: [EntryChange]) async throws(StoreError) { try await wait() }
    func purge(_ selection: EntrySelection) async throws(StoreError) -> PurgeResult { try await wait() }
    func statistics() async throws(StoreError) -> TierStatistics { try await wait() }
}

/// A tier that returns another entry than the requested one.
private final class LyingTier: CacheTier {
    enum Lie: CaseIterable { case otherKey, cut, changed, purged }

    let name = TierName("lying")
    private let lie: Lie
    private let tier: PlainTier

    init(_ lie: Lie, _ tier: PlainTier) { (self.lie, self.tier) = (lie, tier) }

    func find(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry? {
        let found = try await tier.find(key, part)
        func false_(_ body: [UInt8]) -> [UInt8] {
            switch lie {
            case .cut: Array(body.dropLast())
            case .changed: body.dropLast() + [(body.last ?? 0) ^ 1]
            case .otherKey, .purged: body
            }
        }
        switch (found, lie) {
        case (.records(var records)?, .otherKey):
            for at in records.indices { records[at].source = "http://another.example/" }
            return .records(records)
        case (.original(.bytes(let body)?)?, _):
            return .original(.bytes(lie == .otherKey ? body.reversed() : false_(body)))
        case (.variant(var entry, let body?)?, _):
            if lie == .otherKey { entry.key = digest([7]) }
            return .variant(entry, body: false_(body))
        default:
            return found
        }
    }

    func store(_ changes: [EntryChange]) async throws(StoreError) { try await tier.store(changes) }

    func purge(_ selection: EntrySelection) async throws(StoreError) -> PurgeResult {
        lie == .purged ? PurgeResult() : try await tier.purge(selection)
    }

    func statistics() async throws(StoreError) -> TierStatistics { try await tier.statistics() }
}

/// Counts look-ups by kind.
private final class CountingTier: CacheTier {
    let name = TierName("counting")
    let finds = Mutex<[String: Int]>([:])
    private let tier: PlainTier

    init(_ tier: PlainTier) { self.tier = tier }

    func find(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry? {
        let kind =
            switch key {
            case .records: "records"
            case .original: "original"
            case .variant: "variant"
            }
        finds.withLock { $0[kind, default: 0] += 1 }
        return try await tier.find(key, part)
    }

    func store(_ changes: [EntryChange]) async throws(StoreError) { try await tier.store(changes) }
    func purge(_ selection: EntrySelection) async throws(StoreError) -> PurgeResult { try await tier.purge(selection) }
    func statistics() async throws(StoreError) -> TierStatistics { try await tier.statistics() }
}

/// A tier that stores late, and does not end a call that is cancelled.
private final class SlowTier: CacheTier {
    let name = TierName("slow")
    let stall = Gate()
    let stored = Atomic<Int>(0)
    private let tier: PlainTier

    init(_ tier: PlainTier) { self.tier = tier }

    func find(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry? {
        try await tier.find(key, part)
    }

    func store(_ changes: [EntryChange]) async throws(StoreError) {
        let stall = stall
        await Task { try? await stall.pass() }.value
        try await tier.store(changes)
        stored.add(1, ordering: .relaxed)
    }

    func purge(_ selection: EntrySelection) async throws(StoreError) -> PurgeResult { try await tier.purge(selection) }
    func statistics() async throws(StoreError) -> TierStatistics { try await tier.statistics() }
}

struct TierTroubleTests {
    let folder = CacheFolder()

    private func tiers(_ tier: any CacheTier, _ change: (inout TierPlacement) -> Void = { _ in }) throws -> Tiers {
        var configuration = PipelineConfiguration()
        configuration.memory = .init(originals: 0, variants: 0)
        var placement = TierPlacement(tier)
        placement.breaker.failures = .max
        change(&placement)
        configuration.tiers = [placement]
        return try Tiers(TiersConfiguration(configuration), readers: OwnedThreads(count: 1))
    }

    /// Serves a picture that stays fresh from an origin, with one further tier and nothing in memory.
    private func withTier(
        _ tier: any CacheTier, memory: Int = 0, deadline: Duration? = nil,
        _ body: (CachingBench) async throws -> Void
    ) async throws {
        try await withCache {
            $0.memory = .init(originals: memory, variants: memory)
            $0.cacheFolder = nil
            var placement = TierPlacement(tier)
            if let deadline { placement.deadline = deadline }
            if let deadline { placement.storeDeadline = deadline }
            $0.tiers = [placement]
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=600").picture()
        } _: { bench in
            try await body(bench)
        }
    }

    @Test func `a further tier answers for a process that has nothing`() async throws {
        let plain = PlainTier(folder: folder.path)
        try await withTier(plain) { bench in
            let cold = try await bench.image()
            await bench.pipeline.drain()
            let again = try await bench.image()
            #expect(
                cold.outcome == .rendered && again.outcome == .init(TierName("plain")) && again.bytes == cold.bytes)
            #expect(bench.count == 1)
            #expect(try await bench.get().handling.detail == "plain")
            let purged = try await bench.pipeline.purge(.source(.url(CachingBench.url)))
            #expect(purged.records == 1 && purged.unconfirmed.isEmpty)
            #expect(try await bench.image().outcome == .rendered)
        }
    }

    @Test func `what is found in a further tier is copied to the nearer ones`() async throws {
        let (near, far) = (CacheFolder(), PlainTier(folder: folder.path))
        var configuration = PipelineConfiguration()
        configuration.memory = .init(originals: 1 << 20, variants: 1 << 20)
        configuration.cacheFolder = near.path
        configuration.tiers = [TierPlacement(far)]
        let tiers = try Tiers(TiersConfiguration(configuration), readers: OwnedThreads(count: 1))
        let body = bytes(1_000, seed: 1)
        let original = record("http://a/", body)
        let entry = variant("v", of: original.digest, [1, 2])
        try await far.store([
            EntryChange(.original(original, body: .bytes(body)), mark: PurgeMark(1)),
            EntryChange(.variant(entry, body: [1, 2], source: original.source), mark: PurgeMark(1)),
        ])
        #expect(await tiers.records(of: original.source).tier == TierName("plain"))
        #expect(await tiers.originalBody(original.digest, of: (original, tiers.marks()))?.tier == TierName("plain"))
        #expect(await tiers.variant(entry.key, of: original.digest)?.1 == TierName("plain"))
        await tiers.drain()
        let store = try #require(tiers.folder?.store)
        #expect(try store.records(source: original.source) == [original])
        #expect(try store.originalBody(digest: original.digest) == body)
        #expect(try store.variant(key: entry.key, of: original.digest)?.body == [1, 2])
        #expect(await tiers.records(of: original.source).tier == .memory)
        #expect(await tiers.originalBody(original.digest)?.tier == .memory)
        await tiers.close()
    }

    @Test func `a cold request asks a further tier once for its record and once for its variant`() async throws {
        let tier = CountingTier(PlainTier(folder: folder.path))
        try await withTier(tier, memory: 1 << 20) { bench in
            _ = try await bench.image()
            #expect(tier.finds.withLock { $0 } == ["records": 1, "variant": 1])
            _ = try await bench.image()
            #expect(tier.finds.withLock { $0 } == ["records": 1, "variant": 1])
        }
    }

    @Test func `a tier that always fails misses, is counted, and fails no request`() async throws {
        let tier = FaultyTier(PlainTier(folder: folder.path), failingEvery: 1)
        let tiers = try tiers(tier)
        let body = bytes(100, seed: 1)
        let original = record("http://a/", body)
        let marks = await tiers.currentMarks()
        tiers.store(original, body: .bytes(body), storage: .all, marks: marks)
        tiers.store(
            variant("v", of: original.digest, body), body: body, of: original.source, storage: .all, marks: marks)
        tiers.freshen(original, storage: .all, marks: marks)
        tiers.forget(original)
        await tiers.drain()
        #expect(await tiers.records(of: original.source).records.isEmpty)
        #expect(await tiers.originalBody(original.digest) == nil)
        #expect(await tiers.tierOfOriginal(original.digest) == .none)
        #expect(await tiers.variant(digest(Array("v".utf8)), of: original.digest) == nil)
        // A change that failed together with others is tried once more, alone, and counted once.
        #expect(tiers.counters.failures >= 8 && tiers.counters.failures <= tier.failures)
        #expect(try await tiers.purge(EntrySelection(sources: [original.source])).unconfirmed == [tier.name])
        await tiers.close()
    }

    @Test func `requests are answered over a tier that fails every other call`() async throws {
        let tier = FaultyTier(PlainTier(folder: folder.path), failingEvery: 2, .after)
        try await withTier(tier) { bench in
            for _ in 0..<6 {
                let answer = try await bench.image()
                #expect(!answer.bytes.isEmpty)
            }
            #expect(tier.failures > 3)
        }
    }

    @Test func `a tier that never answers costs misses only, and none of its calls outlives its deadline`() async throws
    {
        let tier = SilentTier()
        try await withTier(tier, deadline: .milliseconds(20)) { bench in
            for width in 40..<43 {
                let answer = try await bench.image("thumbnail:\(width)")
                #expect(answer.outcome == .rendered)
            }
            await bench.pipeline.drain()
            #expect(tier.calls.load(ordering: .relaxed) > 0)
            await waitOrRecord { tier.inProgress.load(ordering: .relaxed) > 0 }
        }
    }

    @Test func `a tier whose calls cannot be cancelled is skipped beyond so many`() async throws {
        let tier = SilentTier(ignoresCancellation: true)
        let tiers = try tiers(tier) {
            $0.deadline = .milliseconds(1)
            $0.maxConcurrentCalls = 3
        }
        for number in 0..<10 { #expect(await tiers.originalBody(digest([UInt8(number)])) == nil) }
        #expect(tier.calls.load(ordering: .relaxed) == 3 && tiers.counters.failures == 3)
        tier.ended.open()
        await waitOrRecord { tier.inProgress.load(ordering: .relaxed) > 0 }
        #expect(await tiers.originalBody(digest([100])) == nil)
        #expect(tier.calls.load(ordering: .relaxed) == 4)
        await tiers.close()
    }

    @Test func `a tier that keeps failing is left alone for a while`() async throws {
        let tier = FaultyTier(PlainTier(folder: folder.path), failingEvery: 1)
        let tiers = try tiers(tier) {
            $0.breaker.failures = 2
            $0.breaker.pause = .seconds(3_600)
        }
        for number in 0..<10 { #expect(await tiers.originalBody(digest([UInt8(number)])) == nil) }
        #expect(tier.failures == 2)
        await tiers.close()
    }

    @Test(arguments: LyingTier.Lie.allCases)
    fileprivate func `a tier that lies costs misses only`(lie: LyingTier.Lie) async throws {
        let plain = PlainTier(folder: folder.path)
        let tier = LyingTier(lie, plain)
        try await withTier(tier) { bench in
            let first = try await bench.image()
            let whole = try await bench.image(nil)
            await bench.pipeline.drain()
            if lie == .purged {
                let purged = try await bench.pipeline.purge(.source(.url(CachingBench.url)))
                #expect(purged.records == 0)
                bench.clock.advance(1)
            }
            let (second, again) = (try await bench.image(), try await bench.image(nil))
            #expect(second.bytes == first.bytes && second.outcome == .rendered)
            #expect(again.bytes == whole.bytes && again.originalOutcome != .memory)
            #expect(bench.pipeline.tiers.counters.failures > 0 || lie == .purged)
            if lie == .purged { #expect(bench.count == 2) }
        }
    }

    @Test func `changes beyond what may wait for a tier are dropped and counted`() async throws {
        let tier = SilentTier()
        let tiers = try tiers(tier) {
            $0.queueBytes = 5_000
            $0.storeDeadline = .milliseconds(1)
        }
        let marks = tiers.marks()
        for number in 0..<10 {
            let body = bytes(900, seed: number)
            tiers.store(record("http://\(number)/", body), body: .bytes(body), storage: .all, marks: marks)
        }
        await tiers.drain()
        #expect(tiers.counters.dropped >= 5 && tiers.counters.failures > 0)
        await tiers.close()
    }

    @Test(arguments: ["source", "digest", "prefix", "all work"])
    func `a tier without marks gets nothing that a purge has overtaken`(_ purged: String) async throws {
        let plain = PlainTier(folder: folder.path)
        let tiers = try tiers(plain)
        let body = bytes(100, seed: 1)
        let original = record("http://a/1", body)
        let entry = variant("v", of: original.digest, body)
        func store(_ marks: Tiers.Marks) async {
            tiers.store(original, body: .bytes(body), storage: .all, marks: marks)
            tiers.store(entry, body: body, of: original.source, storage: .all, marks: marks)
            await tiers.drain()
        }
        func isThere() async throws -> [Bool] {
            [
                try await plain.find(.records(source: original.source), .description) != nil,
                try await plain.find(.variant(entry.key, of: original.digest), .description) != nil,
            ]
        }
        let before = tiers.marks()
        _ = try await tiers.purge(EntrySelection(sources: ["http://b/"]))
        await store(before)
        #expect(try await isThere() == [true, true])
        let selection: EntrySelection =
            switch purged {
            case "source": EntrySelection(sources: [original.source])
            case "digest": EntrySelection(digests: [original.digest])
            case "prefix": EntrySelection(matching: SourceSelection(prefixes: ["http://a/"]))
            default: .workInFlight
            }
        _ = try await tiers.purge(selection)
        if purged == "digest" || purged == "all work" {
            _ = try await plain.purge(EntrySelection(sources: [original.source]))
        }
        await store(before)
        #expect(try await isThere() == [false, false])
        await store(tiers.marks())
        #expect(try await isThere() == [true, true])
        await tiers.close()
    }

    @Test func `a purge is not confirmed while a store operation that exceeded its deadline is still in progress`()
        async throws
    {
        let tier = SlowTier(PlainTier(folder: folder.path))
        let tiers = try tiers(tier) { $0.storeDeadline = .milliseconds(20) }
        let body = bytes(100, seed: 1)
        let original = record("http://a/", body)
        let selection = EntrySelection(sources: [original.source])
        tiers.store(original, body: .bytes(body), storage: .all, marks: tiers.marks())
        await tiers.drain()
        #expect(try await tiers.purge(selection).unconfirmed == [tier.name])
        tier.stall.open()
        await waitOrRecord { tier.stored.load(ordering: .relaxed) == 0 }
        // The call ends a moment after the tier has stored.
        var isConfirmed = false
        for _ in 0..<10_000 where !isConfirmed { isConfirmed = await tiers.purgeFarther(selection) }
        #expect(isConfirmed)
        #expect(try await tier.find(.records(source: original.source), .description) == nil)
        await tiers.close()
    }
}
