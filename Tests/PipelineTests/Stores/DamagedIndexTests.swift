@testable import PipelineCaching
import Glibc
import Testing
import Variants

@testable import Pipeline

/// An index in which any bit may be wrong: SQLite keeps no checksums.
@Suite struct DamagedIndexTests {
    let folder = CacheFolder()
    private let small = bytes(3_000, seed: 1)
    private let large = bytes(100_000, seed: 2)

    private func filled() throws {
        let store = try DiskStore(folder: folder.path)
        for (number, body) in [small, large].enumerated() {
            let original = record("http://a/\(number)", body)
            #expect(try store.storeOriginal(original, body: body, generation: 1))
            for copy in 0..<3 {
                let made = bytes(700 + copy, seed: copy)
                let entry = variant("\(number)-\(copy)", of: original.digest, made)
                #expect(try store.storeVariant(entry, body: made, generation: 1, source: original.source))
            }
        }
        store.close()
    }

    /// Everything a program does with a store.
    private func use(_ store: DiskStore) throws {
        for (number, body) in [small, large].enumerated() {
            let original = record("http://a/\(number)", body)
            let found = try store.originalBody(digest: original.digest)
            #expect(found == nil || found == body)
            for copy in 0..<3 {
                let made = bytes(700 + copy, seed: copy)
                let entry = variant("\(number)-\(copy)", of: original.digest, made)
                let found = try store.variant(key: entry.key, of: entry.originalDigest)
                #expect(found == nil || found?.body == made)
                _ = try store.storeVariant(
                    entry, body: made, generation: store.generationNow(), source: original.source)
            }
            _ = try store.records(source: original.source)
            _ = try store.storeOriginal(original, body: body, generation: store.generationNow())
        }
        _ = try store.statistics()
        try store.list(ListRequest()) { _ in true }
        _ = try store.inspect(String(digest(small).prefix(8)))
        var request = TrimRequest()
        request.maxEntries = 4
        _ = try store.trim(request)
        _ = try store.verify()
        _ = try store.purge(source: "http://a/0")
        try store.flush()
    }

    private static let numbers = [Int.max, Int.min, -1, 1 << 62, 1 << 43 - 1, 1 << 33]

    /// One wrong bit of the number makes a version of the past.
    @Test(arguments: [0, -1])
    func `an index that says it is older than its tables are is damaged`(version: Int) throws {
        var store = try DiskStore(folder: folder.path)
        let body = bytes(700, seed: 1)
        let entry = variant("v", of: digest(body), body)
        #expect(try store.storeVariant(entry, body: body, generation: 1))
        store.close()
        try folder.sql("PRAGMA user_version=\(version)")
        store = try DiskStore(folder: folder.path)
        #expect(store.rebuilds == 1 && folder.size("cache.sqlite.damaged") != nil)
        #expect(try store.variant(key: entry.key, of: entry.originalDigest) == nil)
        #expect(try store.storeVariant(entry, body: body, generation: store.generationNow()))
        #expect(try store.variant(key: entry.key, of: entry.originalDigest)?.body == body)
        #expect(try store.verify().isClean)
    }

    @Test(
        arguments: [
            "variants SET length", "variants SET body", "variants SET size", "variants SET accesses",
            "variants SET clock",
            "variants SET width", "variants SET digest", "variants SET original", "originals SET size",
            "originals SET priority", "bodies SET length", "bodies SET checksum", "bodies SET entries",
            "bodies SET digest",
            "bodies SET data", "records SET length", "records SET size", "records SET digest", "records SET width",
            "records SET status", "records SET details", "state SET value", "tiers SET entries", "tiers SET bytes",
            "tiers SET clock", "tiers SET ghost_serial", "tiers SET ghost_floor", "tiers SET hits",
            "purges SET generation", "links SET digest", "ghosts SET serial", "ghosts SET tier",
        ])
    func `no number in a row ends the process or holds it up`(column: String) throws {
        try filled()
        let before = try DiskStore(folder: folder.path)
        // Free slots, and purges that are remembered.
        _ = try before.purge(source: "http://a/0")
        before.close()
        for number in Self.numbers {
            try folder.sql("UPDATE OR IGNORE \(column) = \(number)")
            let store = try DiskStore(folder: folder.path)
            try use(store)
            _ = try store.verify(repair: true)
            #expect(try store.verify().isClean, "\(column) = \(number)")
            // Whatever it was, what comes is kept.
            let entry = variant("new", of: digest([]), small)
            let isStored = try store.storeVariant(entry, body: small, generation: store.generationNow())
            let found = try store.variant(key: entry.key, of: entry.originalDigest)
            #expect(found?.body == (isStored ? small : nil), "\(column) = \(number)")
            store.close()
        }
    }

    @Test(arguments: numbers, ["bodies", "variants", "originals", "records"])
    func `no number of a row does either`(number: Int, table: String) throws {
        try filled()
        try folder.sql("UPDATE \(table) SET id = \(number) WHERE id = (SELECT max(id) FROM \(table))")
        let store = try DiskStore(folder: folder.path)
        try use(store)
        _ = try store.verify(repair: true)
        #expect(try store.verify().isClean)
    }

    @Test func `a name that is gone from the schema is damage: an empty index is begun`() throws {
        try filled()
        try folder.sql(
            """
            PRAGMA writable_schema=ON;
            UPDATE sqlite_schema SET sql = replace(sql, ' digest BLOB', ' digeqt BLOB') WHERE name = 'bodies';
            """)
        let store = try DiskStore(folder: folder.path)
        try use(store)
        #expect(store.rebuilds == 1 && folder.size("cache.sqlite.damaged") != nil)
        #expect(try store.verify().isClean)
    }

    @Test(arguments: ["cut", "log"]) func `an index that is cut or loses its log in use locks no process out`(
        what: String
    )
        throws
    {
        try filled()
        let first = try DiskStore(folder: folder.path)
        let entry = variant("more", of: digest([]), small)
        #expect(try first.storeVariant(entry, body: small, generation: first.generationNow()))
        if what == "cut" {
            truncate("\(folder.path)/cache.sqlite", 0)
        } else {
            unlink("\(folder.path)/cache.sqlite-wal")
        }
        let second = try DiskStore(folder: folder.path)
        for store in [second, first] { try use(store) }
        #expect(try second.storeVariant(entry, body: small, generation: second.generationNow()))
        #expect(try first.variant(key: entry.key, of: entry.originalDigest)?.body == small)
        #expect(try second.verify().isClean)
    }
}
