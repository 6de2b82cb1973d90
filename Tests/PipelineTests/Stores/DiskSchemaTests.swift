import Glibc
import Testing

@testable import Pipeline

@Suite struct DiskSchemaTests {
    let folder = CacheFolder()

    @Test(arguments: 1..<DiskSchema.version)
    func `an index of an older version is set aside, and an empty one begun`(version: Int) throws {
        let body = bytes(5_000, seed: 1)
        var store = try DiskStore(folder: folder.path)
        #expect(try store.storeOriginal(record("http://a/", body), body: body, generation: 1))
        store.close()
        try folder.sql("PRAGMA user_version = \(version)")

        store = try DiskStore(folder: folder.path)
        #expect(store.rebuilds == 1 && store.notice?.contains("an older program's") == true)
        #expect(access(folder.path + "/cache.sqlite.damaged", F_OK) == 0)
        #expect(try store.records(source: "http://a/") == [] && store.originalBody(digest: digest(body)) == nil)
        let generation = try store.generationNow()
        #expect(try store.storeOriginal(record("http://a/", body), body: body, generation: generation))
        #expect(try store.originalBody(digest: digest(body)) == body)
        #expect(try store.verify().isClean)
        store.close()
        #expect(try DiskStore(folder: folder.path).rebuilds == 0)
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
