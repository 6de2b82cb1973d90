@testable import PipelineCaching
import Testing

@testable import Pipeline

@Suite struct ClosedIndexTests {
    let folder = CacheFolder()

    private func open(fsync: Bool = false) throws -> DiskStore {
        var configuration = DiskStoreConfiguration()
        configuration.fsync = fsync
        return try DiskStore(folder: folder.path, configuration: configuration)
    }

    private func put(_ name: String) throws {
        let store = try open()
        defer { store.close() }
        let entry = variant(name, of: digest([]), [7, 8, 9])
        #expect(try store.storeVariant(entry, body: [7, 8, 9], generation: try store.generationNow()))
    }

    /// - Returns: bytes of the log once it is closed.
    private func lookUp(_ name: String, fsync: Bool = false) throws -> Int {
        let store = try open(fsync: fsync)
        #expect(try store.variant(key: digest(Array(name.utf8)))?.body == [7, 8, 9])
        store.close()
        return try #require(log)
    }

    private var log: Int? { folder.size("cache.sqlite-wal") }

    @Test func `who has only looked leaves its counts in the log, until they are many`() throws {
        try put("a")
        #expect(log == 0)
        let left = try (0..<40).map { _ in try lookUp("a") }
        #expect(left[0] > 0 && left.allSatisfy { (0...DiskSchema.keptLogBytes).contains($0) })
        #expect(left.contains(0), "\(left)")
        let store = try open()
        defer { store.close() }
        #expect(try store.statistics().variants.hits == 40)
    }

    @Test func `who has stored something moves the log into the index, as does who wants all of it on the disk`() throws
    {
        try put("a")
        #expect(try lookUp("a") > 0)
        try put("b")
        #expect(log == 0)
        #expect(try lookUp("b", fsync: true) == 0)
    }
}
