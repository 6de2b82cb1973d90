import HTTPCaching
import PipelineSupport
import Testing

@testable import Pipeline
@testable import PipelineCaching

/// Purges that remove less than everything, and purges that search for their entries.
@Suite struct SoftPurgeTests {
    private let folder = CacheFolder()

    private func put(
        _ source: String, seed: Int, _ fields: [HeaderField] = [], recipe: String = "thumbnail:20", in store: DiskStore
    ) throws {
        let body = bytes(90, seed: seed)
        let generation = try store.generationNow()
        var original = record(source, body)
        original.response.fields += fields
        try store.storeOriginal(original, body: body, generation: generation)
        let small = bytes(40, seed: seed + 100_000)
        var entry = variant("\(seed)", of: digest(body), small)
        entry.recipe = recipe
        try store.storeVariant(entry, body: small, generation: generation, source: source)
    }

    private func stale(_ store: DiskStore) throws -> Set<String> {
        try Set(store.originals().map(\.record).filter(\.response.isSoftPurged).map(\.source))
    }

    @Test func `a soft purge marks records, which a validation begun later unmarks and an earlier one does not`() throws
    {
        var store = try DiskStore(folder: folder.path)
        for (seed, source) in ["http://a/1", "http://a/2", "http://b/1"].enumerated() {
            try put(source, seed: seed, in: store)
        }
        let before = try store.generationNow()
        let result = try store.purge(source: "http://a/1", mode: .soft)
        #expect(result.sources == 1 && result.records == 1 && result.originals == 0 && result.variants == 0)
        #expect(result.mark.rawValue > before && result.bytes == 0)
        #expect(try store.purge(source: "http://none/", mode: .soft).sources == 0)
        store.close()
        store = try DiskStore(folder: folder.path)
        #expect(try stale(store) == ["http://a/1"])
        #expect(try store.statistics().variants.entries == 3)
        var confirmed = record("http://a/1", bytes(90, seed: 0))
        #expect(try !store.freshen(confirmed, generation: before))
        #expect(try !store.storeOriginal(confirmed, body: nil, generation: before))
        #expect(try stale(store) == ["http://a/1"])
        confirmed.response.responseTime += 1
        #expect(try store.freshen(confirmed, generation: store.generationNow()))
        #expect(try stale(store).isEmpty)
        let many = try store.purge(SourceSelection(prefixes: ["http://a/"]), mode: .soft)
        #expect(many.sources == 2 && many.records == 2)
        #expect(try stale(store) == ["http://a/1", "http://a/2"])
        #expect(try store.verify().isClean)
    }

    @Test func `every record is put in doubt, which work begun before does not undo and a validation does`() throws {
        let store = try DiskStore(folder: folder.path)
        func doubted() throws -> Set<String> {
            try Set(store.originals().map(\.record).filter(\.response.isInDoubt).map(\.source))
        }
        let count = 3 * DiskStore.step + 7
        try store.inOneTransaction { () throws(StoreError) in
            for number in 0..<count {
                try store.storeOriginal(record("http://a/\(number)", []), body: nil, generation: 1)
            }
        }
        let before = try store.generationNow()
        #expect(try store.markAllForValidation() > before)
        #expect(try doubted().count == count && stale(store).isEmpty)
        var confirmed = record("http://a/3", [])
        #expect(try !store.freshen(confirmed, generation: before))
        #expect(try !store.storeOriginal(record("http://late/", []), body: nil, generation: before))
        #expect(try store.purge(source: "http://a/3", mode: .soft).records == 1)
        #expect(try doubted().contains("http://a/3"))
        confirmed.response.responseTime += 1
        #expect(try store.freshen(confirmed, generation: store.generationNow()))
        #expect(try doubted().count == count - 1)
        #expect(try store.records(source: "http://a/3").map(\.response.isInDoubt) == [false])
        // The rest is stored as it was found.
        let other = try #require(try store.records(source: "http://a/4").first)
        try store.storeOriginal(other, body: nil, generation: store.generationNow())
        #expect(try doubted().contains("http://a/4"))
        #expect(try store.verify().isClean)
    }

    @Test func `several sources are purged as one by one, in whatever order`() throws {
        let store = try DiskStore(folder: folder.path)
        for number in 0..<200 { try put("http://a/\(number)", seed: number % 150, in: store) }
        let names = (0..<190).map { "http://a/\($0)" } + ["http://none/"]
        let before = try store.generationNow()
        let result = try store.purge(sources: names.shuffled())
        #expect(result.sources == 190 && result.records == 190 && result.digests.count == 150)
        #expect(try store.originals().count == 10 && store.statistics().variants.entries == 0)
        let log = try store.purges(since: before)
        #expect(log.names == Set(names).union(result.digests) && log.mark == result.mark)
        #expect(try store.purge(sources: (190..<200).map { "http://a/\($0)" }, mode: .soft).sources == 10)
        #expect(try stale(store).count == 10)
        #expect(try store.verify().isClean)
    }

    @Test func `a purge of variants leaves originals and their records`() throws {
        let store = try DiskStore(folder: folder.path)
        for (seed, source) in ["http://a/1", "http://b/1"].enumerated() { try put(source, seed: seed, in: store) }
        let result = try store.purge(source: "http://a/1", mode: .variantsOnly)
        #expect(result.variants == 1 && result.records == 0 && result.originals == 0)
        let left = try store.statistics()
        #expect(left.variants.entries == 1 && left.records.entries == 2 && left.originals.entries == 2)
        #expect(try store.purge(SourceSelection(prefixes: ["http://"]), mode: .variantsOnly).variants == 1)
        #expect(try store.statistics().records.entries == 2 && stale(store).isEmpty)
        #expect(try store.verify().isClean)
    }

    @Test func `memory without a folder is purged softly too, and of variants alone`() {
        let memory = MemoryTier(MemoryBudgets(originals: 1_000_000, variants: 1_000_000))
        let (a, b) = (record("http://a/", [1]), record("http://b/", [2]))
        for (each, body) in [(a, [1]), (b, [2])] as [(OriginalRecord, [UInt8])] {
            _ = memory.storeOriginal(each, content: .bytes(body), generation: memory.purges.mark)
            _ = memory.storeVariant(
                variant(each.source, of: each.digest, body), body: body, generation: memory.purges.mark,
                source: each.source)
        }
        let before = memory.purges.mark
        let soft = memory.purge(EntrySelection(sources: ["http://a/"], mode: .soft))
        #expect(soft.sources == 1 && soft.records == 1 && soft.variants == 0)
        #expect(memory.records(source: "http://a/").map(\.response.isSoftPurged) == [true])
        #expect(memory.records(source: "http://b/").map(\.response.isSoftPurged) == [false])
        // The copy beside the body is marked too.
        memory.records.removeAll()
        #expect(memory.records(source: "http://a/").map(\.response.isSoftPurged) == [true])
        #expect(!memory.storeOriginal(a, content: nil, generation: before))
        #expect(memory.purge(EntrySelection(sources: ["http://a/"], mode: .variantsOnly)).variants == 1)
        #expect(memory.originals.counters.entries == 2 && memory.variants.counters.entries == 1)
        let all = memory.purge(EntrySelection(matching: SourceSelection(prefixes: ["http://"]), mode: .soft))
        #expect(all.sources == 2 && memory.records(source: "http://b/").map(\.response.isSoftPurged) == [true])
    }

    @Test func `a search by tag goes through every piece of the folder, and the rest stays`() async throws {
        let count = 2 * FolderSearch.rowsAtOnce + 10
        var configuration = TiersConfiguration(memory: MemoryBudgets(originals: 0, variants: 0))
        configuration.folder = folder.path
        let tiers = try Tiers(configuration, readers: OwnedThreads(count: 2))
        let store = try #require(tiers.folder).store
        for start in stride(from: 0, to: count, by: 500) {
            try store.inOneTransaction { () throws(StoreError) in
                for number in start..<min(start + 500, count) {
                    var original = record("http://a/\(number)", [])
                    // Beginning, end and what is neither, in both fields.
                    let isOurs = number % 1_000 == 0 || number == count - 1
                    original.response.fields += [
                        HeaderField("cache-tag", "all, p-\(number % 7),\(isOurs ? "ours" : "oursx")"),
                        HeaderField("Surrogate-Key", number == 5 ? "x ours" : "x y"),
                    ]
                    try store.storeOriginal(original, body: nil, generation: 1)
                }
            }
        }
        let ours: Set<String> = ["http://a/0", "http://a/1000", "http://a/2000", "http://a/\(count - 1)", "http://a/5"]
        let tags: Set<String> = ["ours", "nobody's"]
        let before = tiers.marks()
        let purged = try await tiers.purge(recordsContaining: tags.sorted(), mode: .soft) { record in
            SourceTags.named(in: record.response.fields).contains(where: tags.contains)
        }
        #expect(purged.sources == ours.count && purged.records == ours.count)
        #expect(try stale(store) == ours)
        // Entries in flight may have had the tag.
        tiers.store(record("http://late/", []), body: nil, storage: .all, marks: before)
        await tiers.drain()
        #expect(try store.records(source: "http://late/").isEmpty)
        #expect(await tiers.records(of: "http://late/").records.isEmpty)

        let own: Set<String> = [SourceTags.own("http://a/1234"), SourceTags.own("http://none/")]
        let hard = try await tiers.purge(mode: .hard) { own.contains(SourceTags.own($0)) }
        #expect(hard.sources == 1 && hard.records == 1)
        #expect(try store.records(source: "http://a/1234").isEmpty)
        #expect(try store.statistics().records.entries == count - 1)
        await tiers.close()
    }

    @Test func `tags are those of both fields, as they separate them`() {
        let fields = [
            HeaderField("Cache-Tag", " a,b c , ,a"), HeaderField("surrogate-key", " d  e\tf"), HeaderField("X", "g"),
            HeaderField("CACHE-TAG", "h"),
        ]
        #expect(SourceTags.named(in: fields) == ["a", "b c", "d", "e", "f", "h"])
        #expect(SourceTags.own("http://a/") == "src-" + digest(Array("http://a/".utf8)).prefix(16))
        #expect(SourceTags.isOwn(SourceTags.own("x")) && !SourceTags.isOwn("src-1"))
    }
}
