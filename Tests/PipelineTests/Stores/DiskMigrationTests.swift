import Glibc
import TestSupport
import Testing

@testable import Pipeline

/// An older index where it cannot be brought up.
@Suite(.enabled(if: SmallDisk.isPermitted, "needs leave to mount a tmpfs"))
struct DiskMigrationTests {
    let folder = CacheFolder()
    private static let many = 3_000

    private func opened() throws -> DiskStore {
        var configuration = DiskStoreConfiguration()
        configuration.freeSpace = 0
        return try DiskStore(folder: folder.path, configuration: configuration)
    }

    /// An index of version 7 on it.
    private func filled() throws {
        let store = try opened()
        try store.together { () throws(StoreError) in
            for number in 0..<Self.many {
                let body = bytes(300, seed: number)
                _ = try store.storeOriginal(record("http://a/\(number)", body), body: body, generation: 1)
            }
        }
        store.close()
        try OlderIndex.takeBackToSeven(folder)
        try folder.sql("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    private func holdsAll(_ store: DiskStore) throws -> Bool {
        for number in 0..<Self.many {
            let body = bytes(300, seed: number)
            guard try store.originalBody(digest: digest(body)) == body,
                try store.records(source: "http://a/\(number)") == [record("http://a/\(number)", body)]
            else { return false }
        }
        return try store.verify().isClean
    }

    @Test(arguments: [false, true])
    func `without room it says how much it takes, and loses nothing`(isFull: Bool) throws {
        let disk = try #require(SmallDisk(at: folder.path, kilobytes: 24 << 10))
        defer { disk.unmount() }
        try filled()
        disk.fill("other")
        // In the second case part of it has room.
        if !isFull { truncate("\(folder.path)/other", off_t(folder.size("other")! - 100_000)) }
        let free = disk.free
        for _ in 0..<2 {
            let error = #expect(throws: StoreError.self) { _ = try opened() }
            #expect(error?.code == .full)
            #expect(error?.message.contains("has version 7") == true)
            #expect(error?.message.contains("MB for a while") == true)
            // What it has tried takes nothing.
            #expect(disk.free >= free)
        }
        let index = try #require(folder.size("cache.sqlite"))
        let other = try #require(folder.size("other"))
        truncate("\(folder.path)/other", off_t(max(0, other - Int(DiskMigration.room * Double(index)))))
        let store = try opened()
        #expect(try holdsAll(store))
        store.close()
    }

    @Test func `where it may only be read it says so, and loses nothing`() throws {
        let disk = try #require(SmallDisk(at: folder.path, kilobytes: 24 << 10))
        defer { disk.unmount() }
        try filled()
        #expect(disk.mayWrite(false))
        let error = #expect(throws: StoreError.self) { _ = try opened() }
        #expect(error?.code == .unavailable)
        #expect(error?.message.contains("has version 7") == true && error?.message.contains("make it writable") == true)
        #expect(disk.mayWrite(true))
        let store = try opened()
        #expect(try holdsAll(store))
        store.close()
    }
}
