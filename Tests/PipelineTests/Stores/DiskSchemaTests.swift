import Testing

@testable import Pipeline

@Suite struct DiskSchemaTests {
    let folder = CacheFolder()

    /// Tables and indexes, and the columns of each, whatever their order.
    private static func shape(_ store: DiskStore) throws -> Set<String> {
        try store.perform { index throws(StoreError) in
            let objects = try index.connection.rows(
                "SELECT name, tbl_name, type FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"
            ) { [$0.text(0), $0.text(1), $0.text(2)] }
            var shape = Set(objects.map { $0.joined(separator: " ") })
            for object in objects {
                let info = object[2] == "table" ? "table_info" : "index_info"
                let columns = try index.connection.rows("SELECT * FROM pragma_\(info)('\(object[0])')") { row in
                    object[2] == "table"
                        ? [row.text(1), row.text(2), row.text(3), row.text(4), row.text(5)] : [row.text(2)]
                }
                for column in columns { shape.insert(([object[0]] + column).joined(separator: " ")) }
            }
            return shape
        }
    }

    @Test(arguments: 1..<5)
    func `an index of an older version becomes one of this, with all it holds`(version: Int) throws {
        let (small, large) = (bytes(5_000, seed: 1), bytes(100_000, seed: 2))
        let originals = [record("http://a/", small), record("http://b/", large)]
        // One of them has the same bytes as an original.
        let entries = [
            (variant("u", of: digest(large), bytes(700, seed: 3)), bytes(700, seed: 3)),
            (variant("v", of: digest(small), small), small), (variant("w", of: digest(small), large), large),
        ]
        var older = try OlderIndex(folder)
        try older.add(originals[0], small)
        try older.add(originals[1], large)
        for (entry, body) in entries { try older.add(entry, body, uses: 7) }
        try older.lower(to: version)

        let elsewhere = CacheFolder()
        let fresh = try DiskStore(folder: elsewhere.path)
        let store = try DiskStore(folder: folder.path)
        #expect(try Self.shape(store) == Self.shape(fresh))
        #expect(try store.verify().isClean)
        for original in originals {
            let found = try store.records(source: original.source)
            #expect(found == [original])
        }
        #expect(try store.originalBody(digest: digest(small)) == small)
        #expect(try store.originalBody(digest: digest(large)) == large)
        for (entry, body) in entries {
            let found = try #require(try store.variant(key: entry.key, of: entry.originalDigest))
            #expect(found.entry == entry && found.body == body)
        }
        #expect(try store.variants().map(\.uses) == [8, 8, 8])
        let counters = try store.statistics()
        #expect(counters.variants.entries == 3 && counters.variants.bytes == 105_700)
        #expect(counters.originals.bytes == 105_000 && counters.records.entries == 2)
        #expect(try store.storeVariant(variant("x", of: digest(small), small), body: small, generation: 1))
        #expect(try store.purge(source: "http://a/").variants == 3)
        #expect(try store.verify().isClean)
        #expect(try store.originalBody(digest: digest(large)) == large)
    }

    @Test func `an index of version 5, which looked for keys, becomes one of this`() throws {
        let body = bytes(5_000, seed: 1)
        let entries = (0..<40).map { variant("\($0)", of: digest($0 % 2 == 0 ? body : []), bytes(700 + $0, seed: $0)) }
        var store = try DiskStore(folder: folder.path)
        let shape = try Self.shape(store)
        #expect(try store.storeOriginal(record("http://a/", body), body: body, generation: 1))
        for (number, entry) in entries.enumerated() {
            try store.storeVariant(entry, body: bytes(700 + number, seed: number), generation: 1, source: "http://a/")
        }
        let counters = try store.statistics().variants
        store.close()
        try OlderIndex.takeBackToFive(folder)

        store = try DiskStore(folder: folder.path)
        #expect(try Self.shape(store) == shape)
        #expect(try store.statistics().variants == counters)
        #expect(try store.verify().isClean)
        for (number, entry) in entries.enumerated() {
            let found = try #require(try store.variant(key: entry.key, of: entry.originalDigest))
            #expect(found.entry == entry && found.body == bytes(700 + number, seed: number))
            // In its place rather than beside it.
            try store.storeVariant(entry, body: found.body, generation: 1)
        }
        #expect(try store.statistics().variants.entries == 40)
        #expect(try store.purge(source: "http://a/").variants == 40)
        #expect(try store.verify().isClean)
    }

    @Test func `an index of version 6, which looked for equal bytes, becomes one of this`() throws {
        let (small, large) = (bytes(5_000, seed: 1), bytes(100_000, seed: 2))
        var store = try DiskStore(folder: folder.path)
        let shape = try Self.shape(store)
        #expect(try store.storeOriginal(record("http://a/", small), body: small, generation: 1))
        // Two have the bytes of the original, and two those of one file.
        let bodies = [small, large, small, large, bytes(700, seed: 3)]
        let entries = bodies.enumerated().map { variant("\($0)", of: digest([UInt8($0)]), $1) }
        for (number, entry) in entries.enumerated() {
            try store.storeVariant(entry, body: bodies[number], generation: 1, source: "http://\(number)/")
        }
        let counters = try store.statistics().variants
        store.close()
        try OlderIndex.takeBackToSix(folder)

        store = try DiskStore(folder: folder.path)
        #expect(try Self.shape(store) == shape)
        #expect(try store.statistics().variants == counters)
        #expect(try store.verify().isClean)
        // What shares a body goes one after the other, and the body with the last.
        for gone in 0..<entries.count {
            for (number, entry) in entries.enumerated() {
                let found = try store.variant(key: entry.key, of: entry.originalDigest)
                #expect(number < gone ? found == nil : found?.entry == entry && found?.body == bodies[number])
            }
            #expect(try store.purge(source: "http://\(gone)/").variants == 1)
            #expect(try store.verify().isClean)
        }
        #expect(try store.originalBody(digest: digest(small)) == small)
        #expect(try store.purge(source: "http://a/").originals == 1)
        #expect(try store.verify().isClean)
    }

    @Test func `an index of version 7, which found originals by two indexes, becomes one of this`() throws {
        let bodies = (0..<6).map { bytes($0 == 5 ? 100_000 : 900, seed: $0) }
        let entries = (0..<12).map { variant("\($0)", of: digest(bodies[$0 % 6]), bytes(700 + $0, seed: $0)) }
        var store = try DiskStore(folder: folder.path)
        let shape = try Self.shape(store)
        // The first two have several sources, the fourth a record alone, the fifth neither that nor a source.
        for (number, body) in bodies.enumerated() where number != 4 {
            for source in 0..<(number < 2 ? 3 : 1) {
                let original = record("http://\(source)/\(number)", body)
                let content = number == 3 ? nil : body
                #expect(try store.storeOriginal(original, body: content, generation: 1))
            }
        }
        for (number, entry) in entries.enumerated() where number % 6 != 3 {
            let source = number % 6 == 4 ? nil : "http://0/\(number % 6)"
            try store.storeVariant(entry, body: bytes(700 + number, seed: number), generation: 1, source: source)
        }
        func everything() throws -> [ListedEntry] {
            var all: [ListedEntry] = []
            try store.list(ListRequest()) { page in
                all += page
                return true
            }
            return all
        }
        let before = try everything()
        #expect(before.count == 19)
        store.close()
        try OlderIndex.takeBackToSeven(folder)

        store = try DiskStore(folder: folder.path)
        #expect(try Self.shape(store) == shape)
        #expect(try store.verify().isClean)
        #expect(try everything() == before)
        for (number, body) in bodies.enumerated() {
            let found = try store.originalBody(digest: digest(body))
            #expect(found == (number == 3 || number == 4 ? nil : body))
        }
        for (number, entry) in entries.enumerated() where number % 6 != 3 {
            let found = try #require(try store.variant(key: entry.key, of: entry.originalDigest))
            #expect(found.entry == entry && found.body == bytes(700 + number, seed: number))
        }
        // A new one gets a number of its own, and what has several sources goes with the last.
        #expect(try store.storeOriginal(record("http://new/", [1]), body: [1], generation: 1))
        for source in 0..<3 {
            #expect(try store.purge(source: "http://\(source)/1").variants == (source == 0 ? 2 : 0))
            #expect(try store.verify().isClean)
        }
        #expect(try store.purge(source: "http://new/").originals == 1)
        #expect(try store.statistics().originals.entries == 3 && store.statistics().variants.entries == 8)
    }

    @Test func `a newer version is refused in words, by every one of this, and left as it is`() throws {
        try DiskStore(folder: folder.path).close()
        let newer = DiskSchema.version + 1
        try folder.sql("PRAGMA user_version = \(newer)")
        for _ in 0..<2 {
            let error = #expect(throws: StoreError.self) { _ = try DiskStore(folder: folder.path) }
            #expect(error?.code == .newerVersion)
            #expect(error?.message.contains("version \(newer)") == true)
            #expect(error?.message.contains("update the program") == true)
        }
        try folder.sql("PRAGMA user_version = \(DiskSchema.version)")
        #expect(try DiskStore(folder: folder.path).verify().isClean)
    }
}
