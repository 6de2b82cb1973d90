import CacheTierConformance
import PipelineSupport
import Testing

@testable import Pipeline
@testable import PipelineCaching

/// The tiers that have to pass; a new one is a case here.
enum TierKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case memory, disk, plain
    /// Disk behind a wrapper that fails every third call, which is then made again.
    case failingBefore, failingAfter

    var testDescription: String { rawValue }

    /// Opens a tier in the folder. Only tiers that need it touch it.
    func open(_ folder: CacheFolder) throws -> any CacheTier {
        func disk() throws -> DiskTier {
            var configuration = DiskStoreConfiguration()
            (configuration.originals, configuration.variants) = (64 << 20, 64 << 20)
            return try DiskTier(folder: folder.path, configuration: configuration, readers: OwnedThreads(count: 2))
        }
        return switch self {
        case .memory: MemoryTier(.init(originals: 64 << 20, variants: 64 << 20))
        case .disk: try disk()
        case .plain: PlainTier(folder: folder.path)
        case .failingBefore: FaultyTier(try disk(), failingEvery: 3, .before, isRetrying: true)
        case .failingAfter: FaultyTier(try disk(), failingEvery: 3, .after, isRetrying: true)
        }
    }
}

/// The memory tier as any other, so that the same checks tell whether it keeps what a tier promises.
extension MemoryTier: MarkedTier {
    var name: TierName { .memory }

    func find(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry? {
        switch (key, part) {
        case (.records(let source), _):
            let records = records(source: source)
            return records.isEmpty ? nil : .records(records)
        case (.original(let digest), .body):
            return originalBody(digest: digest).map { .original($0) }
        case (.original(let digest), .description):
            return holdsOriginal(digest: digest) ? .original(nil) : nil
        case (.variant(let key, let original), _):
            guard let found = variant(key: key), found.entry.originalDigest == original else {
                return nil
            }
            return .variant(found.entry, body: part == .body ? found.body : nil)
        }
    }

    func store(_ changes: [EntryChange]) async throws(StoreError) {
        for change in changes {
            switch change.kind {
            case .original(let record, let body):
                _ = storeOriginal(record, content: body, generation: change.mark)
            case .freshenedRecord(let record): _ = freshen(record)
            case .removedRecord(let record):
                _ = removeRecord(source: record.source, selection: record.selection)
            case .variant(let entry, let body, let source):
                _ = storeVariant(entry, body: body, generation: change.mark, source: source)
            }
        }
    }

    func purge(_ selection: EntrySelection) async throws(StoreError) -> PurgeResult {
        if let matching = selection.matching { return purge(matching, digests: selection.digests) }
        return selection.sources.reduce(into: PurgeResult()) { $0.add(purge(source: $1, digests: selection.digests)) }
    }

    var mark: PurgeMark { purges.mark }
    func wasPurgedElsewhere(_ selection: EntrySelection) -> Bool { false }
    func catchUp() async {}

    func statistics() async throws(StoreError) -> TierStatistics {
        let now: () -> TierStatistics = statistics
        return now()
    }
}

struct TierConformanceTests {
    let folder = CacheFolder()

    @Test(arguments: TierKind.allCases, CacheTierConformance.checks)
    func `every tier keeps its promises`(kind: TierKind, check: CacheTierConformance.Check) async throws {
        // Memory forgets which digests a source had before; the tiers behind it tell it at a purge.
        if kind == .memory, "\(check)".contains("every digest the source has had") { return }
        let tier = try kind.open(folder)
        let violations = await CacheTierConformance.violations(of: check, by: tier)
        #expect(violations == [])
        if kind == .failingBefore || kind == .failingAfter {
            #expect(try #require(tier as? FaultyTier).failures > 0)
        }
    }

    @Test(arguments: [TierKind.memory, .disk], [false, true])
    func `a tier with marks stores nothing that a purge has overtaken`(kind: TierKind, byPrefix: Bool) async throws {
        let tier = try #require(try kind.open(folder) as? any MarkedTier)
        let body = bytes(100, seed: 1)
        let original = record("http://a/1", body)
        let entry = variant("v", of: original.digest, body)
        let changes: [EntryChange.Kind] = [
            .original(original, body: .bytes(body)), .variant(entry, body: body, source: original.source),
        ]
        func store(_ mark: PurgeMark) async throws {
            try await tier.store(changes.map { EntryChange($0, mark: mark) })
        }
        func isThere() async throws -> [Bool] {
            [
                try await tier.find(.records(source: original.source), .description) != nil,
                try await tier.find(.variant(entry.key, of: original.digest), .description) != nil,
            ]
        }
        let before = tier.mark
        try await store(before)
        #expect(try await isThere() == [true, true])
        let matching = SourceSelection(prefixes: ["http://a/"])
        let result = try await tier.purge(
            byPrefix ? EntrySelection(matching: matching) : EntrySelection(sources: [original.source]))
        #expect(result.mark > before)
        try await store(before)
        #expect(try await isThere() == [false, false])
        try await store(result.mark)
        #expect(try await isThere() == [true, true])
        // A soft purge is overtaken by what begins later alone.
        _ = try await tier.purge(EntrySelection(sources: [original.source], mode: .soft))
        var confirmed = original
        confirmed.response.responseTime += 1
        try await tier.store([EntryChange(.freshenedRecord(confirmed), mark: result.mark)])
        guard case .records(let left)? = try await tier.find(.records(source: original.source), .description) else {
            return
        }
        #expect(left.allSatisfy { $0.response.isSoftPurged })
    }

    @Test func `a check fails where its promise is broken`() async throws {
        let tier = FaultyTier(PlainTier(folder: folder.path), failingEvery: 1)
        for check in CacheTierConformance.checks {
            #expect(await !CacheTierConformance.violations(of: check, by: tier).isEmpty, "\(check)")
        }
    }

    @Test func `another tier on the folder, later or at once, finds what this one kept`() async throws {
        func open() throws -> DiskTier {
            try DiskTier(
                folder: folder.path, configuration: DiskStoreConfiguration(), readers: OwnedThreads(count: 1))
        }
        let first = try open()
        let body = bytes(100_000, seed: 1)
        let original = record("http://a/", body)
        let entry = variant("v", of: original.digest, [1, 2])
        let mark = try await first.purges(since: nil).mark
        try await first.store([
            EntryChange(.original(original, body: .bytes(body)), mark: mark),
            EntryChange(.variant(entry, body: [1, 2], source: original.source), mark: mark),
        ])
        let second = try open()
        #expect(try second.store.records(source: original.source) == [original])
        await first.close()
        await second.close()
        let third = try open()
        #expect(try third.store.originalBody(digest: original.digest) == body)
        #expect(try third.store.variant(key: entry.key, of: entry.originalDigest)?.entry == entry)
        _ = try await third.purge(EntrySelection(sources: [original.source]))
        #expect(try third.store.variant(key: entry.key, of: entry.originalDigest) == nil)
        await third.close()
    }
}
