@testable import PipelineCaching
import Glibc
import Testing

@testable import Pipeline

@Suite struct DiskSchemaTests {
    let folder = CacheFolder()

    /// The files of a cache folder from before version 1, beside `bodies/`, `generation` and `flights.lock`.
    private func leaveFormer() throws {
        try DiskStore(folder: folder.path).close()
        try folder.sql(
            "PRAGMA application_id = \(DiskSchema.formerApplicationID); PRAGMA user_version = 8; DROP TABLE bodies")
        for name in DiskSchema.formerFiles { folder.overwrite(name, at: 0, with: [1, 2, 3]) }
    }

    @Test(arguments: [false, true])
    func `an index of an older version is set aside with its files, and an empty one begun`(isFormer: Bool) throws {
        let body = bytes(90_000, seed: 1)
        var store = try DiskStore(folder: folder.path)
        #expect(try store.storeOriginal(record("http://a/", body), body: body, generation: 1))
        let generation = try store.generationNow()
        store.close()
        if isFormer { try leaveFormer() } else { try folder.sql("PRAGMA user_version = 1") }

        store = try DiskStore(folder: folder.path)
        #expect(store.rebuilds == 1 && store.notice?.contains("written by an older version") == true)
        #expect(access(folder.path + "/cache.sqlite.damaged", F_OK) == 0)
        for name in DiskSchema.formerFiles { #expect(folder.size(name) == nil, "\(name)") }
        #expect(try store.records(source: "http://a/") == [] && store.originalBody(digest: digest(body)) == nil)
        let now = try store.generationNow()
        #expect(now > generation)
        #expect(try store.storeOriginal(record("http://a/", body), body: body, generation: now))
        #expect(try store.originalBody(digest: digest(body)) == body)
        #expect(try store.verify().isClean)
        store.close()
        #expect(try DiskStore(folder: folder.path).rebuilds == 0)
    }

    @Test func `a newer version is refused with an error message by each process, and left as it is`() throws {
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
