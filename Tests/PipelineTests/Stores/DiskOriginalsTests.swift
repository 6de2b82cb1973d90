import TestSupport
import Testing

@testable import Pipeline

/// Numbers of originals, and the sources that have had them.
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

    private func numbers(_ store: DiskStore) throws -> [Int] {
        try store.perform { index throws(StoreError) in
            try index.connection.rows("SELECT id FROM digests ORDER BY id") { $0.integer(0) }
        }
    }

    @Test func `no two originals have one number, whoever gives it and whatever has gone`() throws {
        var stores = try (0..<2).map { _ in try DiskStore(folder: folder.path) }
        for seed in 0..<8 { try put("http://a/\(seed)", seed: seed, in: stores[seed % 2]) }
        #expect(try numbers(stores[0]) == Array(1...8))
        for gone in [2, 7] { #expect(try stores[gone % 2].purge(source: "http://a/\(gone)").variants == 2) }
        stores[0].close()
        stores[0] = try DiskStore(folder: folder.path)
        for seed in 8..<12 { try put("http://a/\(seed)", seed: seed, in: stores[seed / 2 % 2]) }
        // Of an original without a record, and of a record without a body.
        let made = bytes(30, seed: 1)
        let generation = try stores[0].generationNow()
        try stores[0].storeVariant(variant("x", of: digest([1]), made), body: made, generation: generation)
        try stores[1].storeOriginal(record("http://b/", [1, 2]), body: nil, generation: generation)
        let numbers = try numbers(stores[0])
        #expect(numbers.count == 12 && Set(numbers).count == 12)
        #expect(try stores[0].verify().isClean)
        for seed in 0..<12 where seed != 2 && seed != 7 {
            #expect(try stores[1].purge(source: "http://a/\(seed)").variants == 2)
        }
        #expect(try stores[0].verify().isClean)
        #expect(try count("digests", in: stores[0]) == 2 && count("links", in: stores[0]) == 1)
    }

    @Test func `the first variant of a new original changes five pages`() throws {
        let store = try DiskStore(folder: folder.path)
        func pages() throws -> Int {
            try store.perform { index throws(StoreError) in try index.connection.pagesInLog }
        }
        var changed: [Int: Int] = [:]
        for number in 0..<120 {
            let body = bytes(100, seed: number)
            let entry = variant("\(number)", of: digest([UInt8(number)]), body)
            let before = try pages()
            try store.storeVariant(entry, body: body, generation: 1, source: "http://a/\(number)")
            changed[try pages() - before, default: 0] += 1
        }
        // One each of `tiers`, `variants` and its queue, `digests` and `links`; now and then a page is split.
        #expect(changed.keys.min() == 5 && changed[5, default: 0] > 80, "\(changed)")
    }

    @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 0, 2]])
    func `an original of several sources is forgotten with the last, and its links with it`(order: [Int]) throws {
        let store = try DiskStore(folder: folder.path)
        for number in 0..<3 { try put("http://\(number)/", seed: 1, in: store) }
        #expect(try count("links", in: store) == 3 && count("links WHERE further", in: store) == 2)
        for (step, number) in order.enumerated() {
            let result = try store.purge(source: "http://\(number)/")
            #expect(result.digests == [digest(bytes(900, seed: 1))])
            #expect(result.variants == (step == 0 ? 2 : 0) && result.originals == (step == 2 ? 1 : 0))
            #expect(try count("links", in: store) == 2 - step)
            #expect(try store.verify().isClean)
            // What is gone comes again, and is found by its source.
            if step == 1 {
                try put("http://\(number)/", seed: 1, in: store)
                #expect(try store.verify().isClean)
                #expect(try store.purge(source: "http://\(number)/").variants == 2)
            }
        }
        #expect(try count("digests", in: store) == 0)
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
        let originals = try count("digests", in: store)
        #expect(originals < 20)
        #expect(try count("links WHERE NOT further", in: store) == originals)
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
        #expect(try count("digests", in: store) == OriginalRecord.selectionLimit)
        #expect(try store.verify().isClean)
    }

    @Test(
        arguments: [
            "UPDATE digests SET id = id + 100 WHERE id = 2", "UPDATE digests SET id = 1", "UPDATE digests SET head = 5",
            "UPDATE digests SET digest = zeroblob(32) WHERE id = 2", "UPDATE digests SET digest = 7",
            "DELETE FROM digests WHERE id = 1", "INSERT INTO digests VALUES (0, 77, zeroblob(32), NULL)",
            "INSERT INTO digests SELECT head, id + 50, digest, NULL FROM digests",
            "UPDATE digests SET source = 'http://z/'", "UPDATE digests SET source = NULL",
            "UPDATE originals SET digest = zeroblob(32)", "UPDATE originals SET id = id + 1000",
            "UPDATE records SET digest = zeroblob(32) WHERE id = 1", "UPDATE records SET original = 3 - original",
            "UPDATE records SET original = 5, digest = zeroblob(32)", "UPDATE variants SET original = zeroblob(32)",
            "UPDATE variants SET id = id + (1 << 30)", "DELETE FROM links",
            "INSERT INTO links VALUES ('http://nothing/', 99, 0, 0)", "UPDATE links SET head = head + 1",
            "UPDATE links SET further = 1 - further", "UPDATE links SET original = original + 5",
        ])
    func `what numbers, digests and links say of each other is verified, and mended`(damage: String) throws {
        var store = try DiskStore(folder: folder.path)
        for seed in 1..<4 { try put("http://a/\(seed)", seed: seed, in: store) }
        try put("http://b/", seed: 1, in: store)
        #expect(try store.verify().isClean)
        store.close()
        try folder.sql(damage)
        store = try DiskStore(folder: folder.path)
        let report = try store.verify()
        #expect(report.brokenEntries > 0 && !report.isClean && !report.isIndexDamaged)
        #expect(try store.verify(repair: true).brokenEntries > 0)
        #expect(try store.verify().isClean)
        for seed in 1..<4 { try put("http://a/\(seed)", seed: seed, in: store) }
        #expect(try store.verify().isClean)
        for seed in 1..<4 {
            #expect(try store.originalBody(digest: digest(bytes(900, seed: seed))) == bytes(900, seed: seed))
            #expect(try store.purge(source: "http://a/\(seed)").variants == 2)
        }
        _ = try store.purge(source: "http://b/")
        #expect(try count("digests", in: store) == 0 && count("links", in: store) == 0)
        #expect(try store.verify().isClean)
    }

    @Test func `two originals with one number never answer for each other`() throws {
        var store = try DiskStore(folder: folder.path)
        for seed in 1..<3 { try put("http://a/\(seed)", seed: seed, in: store) }
        store.close()
        try folder.sql("UPDATE digests SET id = 1")
        store = try DiskStore(folder: folder.path)
        for _ in 0..<2 {
            for seed in 1..<3 {
                let body = bytes(900, seed: seed)
                let found = try store.originalBody(digest: digest(body))
                #expect(found == nil || found == body)
                for copy in 0..<2 {
                    let found = try store.variant(key: digest(Array("\(seed)-\(copy)".utf8)), of: digest(body))
                    #expect(found == nil || found?.body == bytes(700 + copy, seed: seed))
                }
                try put("http://a/\(seed)", seed: seed, in: store)
                #expect(try store.originalBody(digest: digest(body)) == body)
            }
        }
    }
}
