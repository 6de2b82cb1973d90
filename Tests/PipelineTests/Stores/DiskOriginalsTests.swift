@testable import PipelineCaching
import TestSupport
import Testing

@testable import Pipeline

/// Originals, and the sources that have had them.
@Suite struct DiskOriginalsTests {
    let folder = CacheFolder()

    /// Stores an original with two variants, each said to be of this source.
    private func put(_ source: String, seed: Int, in store: DiskStore) throws {
        let body = bytes(900, seed: seed)
        #expect(try store.storeOriginal(record(source, body), body: body, generation: store.generationNow()))
        for copy in 0..<2 {
            let made = bytes(700 + copy, seed: seed)
            let entry = variant("\(seed)-\(copy)", of: digest(body), made)
            #expect(try store.storeVariant(entry, body: made, generation: store.generationNow(), source: source))
        }
    }

    private func count(_ table: String, in store: DiskStore) throws -> Int {
        try store.perform { index throws(StoreError) in
            try index.connection.first("SELECT count(*) FROM \(table)") { $0.integer(0) } ?? 0
        }
    }

    @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 0, 2]])
    func `an original of several sources is forgotten with the last, and its links with it`(order: [Int]) throws {
        let store = try DiskStore(folder: folder.path)
        for number in 0..<3 { try put("http://\(number)/", seed: 1, in: store) }
        #expect(try count("links", in: store) == 3)
        for (step, number) in order.enumerated() {
            let result = try store.purge(source: "http://\(number)/")
            #expect(result.digests == [digest(bytes(900, seed: 1))])
            #expect(result.variants == (step == 0 ? 2 : 0) && result.originals == (step == 2 ? 1 : 0))
            #expect(try count("links", in: store) == 2 - step)
            #expect(try store.verify().isClean)
            // Removed entries return, and are found by their source.
            if step == 1 {
                try put("http://\(number)/", seed: 1, in: store)
                #expect(try store.verify().isClean)
                #expect(try store.purge(source: "http://\(number)/").variants == 2)
            }
        }
        #expect(try count("bodies", in: store) == 0)
    }

    @Test func `what no record and no variant needs goes with its links when it is evicted`() throws {
        var configuration = DiskStoreConfiguration()
        configuration.variants = 20 * 512
        configuration.records = 1
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        for number in 0..<200 {
            let made = bytes(100, seed: number)
            // Each third original has three sources.
            for source in 0..<(number % 3 == 0 ? 3 : 1) {
                var entry = variant("\(number)-\(source)", of: digest([UInt8(number)]), made)
                entry.cost = Double(number + 1)
                try store.storeVariant(entry, body: made, generation: 1, source: "http://\(source)/\(number)")
            }
        }
        #expect(try store.statistics().variants.entries == 20)
        let linked = try count("(SELECT DISTINCT source FROM links)", in: store)
        #expect(try count("links", in: store) == linked && linked <= 60 && linked >= 20)
        #expect(try store.verify().isClean)
    }

    @Test func `a response older than all selections that are kept leaves nothing behind`() throws {
        let store = try DiskStore(folder: folder.path)
        for number in 0..<OriginalRecord.selectionLimit {
            let body = bytes(100, seed: number)
            let original = record("http://a/", body, selecting: ["accept": "\(number)"])
            #expect(try store.storeOriginal(original, body: body, generation: 1))
        }
        var oldest = record("http://a/", [1], selecting: [:])
        oldest.response.responseTime = 1
        #expect(try !store.storeOriginal(oldest, body: [1], generation: 1))
        #expect(try store.originalBody(digest: oldest.digest) == nil)
        #expect(try count("bodies", in: store) == OriginalRecord.selectionLimit)
        #expect(try store.verify().isClean)
    }

    @Test(
        arguments: [
            "DELETE FROM bodies WHERE id = 1", "UPDATE bodies SET id = id + 100",
            "UPDATE bodies SET digest = zeroblob(32) WHERE id = 5", "UPDATE bodies SET digest = id",
            "UPDATE originals SET id = id + 1000", "UPDATE records SET digest = zeroblob(32) WHERE id = 1",
            "UPDATE records SET fields = x'00'", "UPDATE records SET details = x'00', media_type = 'image/png'",
            "UPDATE variants SET original = x'00'", "UPDATE variants SET body = body + 1",
            "UPDATE variants SET digest = key", "UPDATE variants SET size = -1", "DELETE FROM links",
            "INSERT INTO links VALUES ('http://nothing/', zeroblob(32))", "UPDATE links SET digest = zeroblob(32)",
        ])
    func `rows that contradict each other are found and corrected`(damage: String) throws {
        var store = try DiskStore(folder: folder.path)
        for seed in 1..<4 { try put("http://a/\(seed)", seed: seed, in: store) }
        try put("http://b/", seed: 1, in: store)
        // A purge that another tier still has to hear of.
        try store.store(texts: ["tiers.waiting.1": "http://c/"])
        #expect(try store.verify().isClean)
        store.close()
        try folder.sql(damage)
        store = try DiskStore(folder: folder.path)
        let report = try store.verify()
        #expect(report[.brokenEntries] > 0 || report.isIndexDamaged)
        #expect(try store.verify(repair: true).isRepaired)
        #expect(try store.verify().isClean)
        #expect(try store.texts().byName == ["tiers.waiting.1": "http://c/"])
        for seed in 1..<4 { try put("http://a/\(seed)", seed: seed, in: store) }
        #expect(try store.verify().isClean)
        for seed in 1..<4 {
            #expect(try store.originalBody(digest: digest(bytes(900, seed: seed))) == bytes(900, seed: seed))
            #expect(try store.purge(source: "http://a/\(seed)").variants == 2)
        }
        _ = try store.purge(source: "http://b/")
        #expect(try count("bodies", in: store) == 0 && count("links", in: store) == 0)
        #expect(try store.verify().isClean)
    }
}
