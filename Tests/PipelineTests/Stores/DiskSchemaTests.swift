import Testing

@testable import Pipeline

@Suite struct DiskSchemaTests {
    let folder = CacheFolder()

    /// What takes an index back to the version before each: columns and tables of that version go.
    static let steps: [Int: String] = [
        4: """
        DROP INDEX purges_time; ALTER TABLE tiers DROP COLUMN stale; ALTER TABLE tiers DROP COLUMN bytes_saved;
        ALTER TABLE tiers DROP COLUMN milliseconds_saved;
        """,
        3: "DROP TABLE ghosts; ALTER TABLE tiers DROP COLUMN clock; ALTER TABLE tiers DROP COLUMN ghosts;",
        2: """
        ALTER TABLE records DROP COLUMN final_url; ALTER TABLE records DROP COLUMN assigned_lifetime;
        ALTER TABLE records DROP COLUMN lifetime_limit;
        """,
    ]

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

    @Test(arguments: 1..<DiskSchema.version)
    func `an index of an older version becomes one of this, with all it holds`(version: Int) throws {
        let body = bytes(500, seed: 1)
        let original = record("http://a/", body)
        let entry = variant("v", of: digest(body), body)
        let first = try DiskStore(folder: folder.path)
        try first.storeOriginal(original, body: body, generation: 1)
        try first.storeVariant(entry, body: body, generation: 1, source: "http://a/")
        let shape = try Self.shape(first)
        first.close()
        for number in stride(from: DiskSchema.version, to: version, by: -1) {
            try folder.sql(try #require(Self.steps[number]))
        }
        try folder.sql("PRAGMA user_version = \(version)")
        let store = try DiskStore(folder: folder.path)
        #expect(try Self.shape(store) == shape)
        #expect(try store.records(source: "http://a/") == [original])
        #expect(try store.variant(key: entry.key)?.body == body)
        #expect(try store.storeVariant(variant("w", of: digest(body), body), body: body, generation: 1))
        #expect(try store.purge(source: "http://a/").variants == 2)
        #expect(try store.verify().isClean)
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
