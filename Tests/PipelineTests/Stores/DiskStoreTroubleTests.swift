@testable import PipelineCaching
import Glibc
import TestSupport
import Testing

@testable import Pipeline

@Suite struct DiskStoreTroubleTests {
    let folder = CacheFolder()

    @Test func `a folder of a newer version is refused and left as it is`() throws {
        try DiskStore(folder: folder.path).close()
        try folder.sql("PRAGMA user_version = 99")
        let error = #expect(throws: StoreError.self) { _ = try DiskStore(folder: folder.path) }
        #expect(error?.code == .newerVersion)
        #expect(error?.message.contains("99") == true && error?.message.contains("version 99") == true)
        #expect(access("\(folder.path)/cache.sqlite.damaged", F_OK) != 0)
    }

    @Test func `a folder that cannot be created is an error that names it`() throws {
        try DiskStore(folder: folder.path).close()
        let error = #expect(throws: StoreError.self) {
            _ = try DiskStore(folder: "\(folder.path)/cache.sqlite/below/it")
        }
        #expect(error?.code == .unavailable)
        #expect(error?.path.contains("cache.sqlite") == true)
    }

    @Test func `folder and files are for this user alone`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(100_000, seed: 1)
        try store.storeOriginal(record("http://a/", body), body: body, generation: 1)
        let hash = digest(body)
        for name in ["", "/cache.sqlite", "/cache.sqlite-wal", "/bodies/\(hash.prefix(2))/\(hash)"] {
            var info = stat()
            #expect(stat(folder.path + name, &info) == 0)
            #expect(info.st_mode & 0o077 == 0, "\(name)")
        }
    }

    @Test(arguments: [true, false]) func `a damaged index is set aside and requests go on`(isGarbage: Bool) throws {
        let body = bytes(1_000, seed: 1)
        let first = try DiskStore(folder: folder.path)
        for number in 0..<50 {
            try first.storeVariant(variant("\(number)", of: digest([]), body), body: body, generation: 1)
        }
        first.close()
        try folder.sql("PRAGMA wal_checkpoint(TRUNCATE)")
        if isGarbage {
            folder.overwrite("cache.sqlite", at: 0, with: bytes(30_000, seed: 2))
        } else {
            truncate("\(folder.path)/cache.sqlite", 12_288)
        }
        let stores = try (0..<2).map { _ in try DiskStore(folder: folder.path) }
        let entry = variant("new", of: digest([]), body)
        #expect(try stores[0].variant(key: entry.key, of: entry.originalDigest) == nil)
        #expect(try stores[0].storeVariant(entry, body: body, generation: stores[0].generationNow()))
        #expect(try stores[1].variant(key: entry.key, of: entry.originalDigest)?.body == body)
        #expect(access("\(folder.path)/cache.sqlite.damaged", F_OK) == 0)
        #expect(try stores[1].verify().isClean)
    }

    @Test func `a store follows when another one replaces the index or the folder is deleted`() throws {
        let stores = try (0..<2).map { _ in try DiskStore(folder: folder.path) }
        let body = bytes(100_000, seed: 1)
        let entry = variant("v", of: digest([]), body)
        try stores[0].storeVariant(entry, body: body, generation: 1)
        try stores[1].perform { index throws(StoreError) in try index.rebuild() }
        #expect(try stores[0].variant(key: entry.key, of: entry.originalDigest) == nil)
        // Purges of the lost index are unknown.
        #expect(try stores[0].storeVariant(entry, body: body, generation: 1) == false)
        #expect(try stores[0].storeVariant(entry, body: body, generation: stores[0].generationNow()))
        #expect(try stores[1].variant(key: entry.key, of: entry.originalDigest)?.body == body)
        rename(folder.path, folder.path + "-moved")
        #expect(try stores[0].variant(key: entry.key, of: entry.originalDigest) == nil)
        #expect(try stores[1].storeVariant(entry, body: body, generation: 1))
        #expect(try stores[0].variant(key: entry.key, of: entry.originalDigest)?.body == body)
        #expect(try stores[0].verify().isClean)
    }

    @Test func `an index that is replaced while stores are made together is left when they have been`() throws {
        let stores = try (0..<2).map { _ in try DiskStore(folder: folder.path) }
        let body = bytes(1_000, seed: 1)
        let entry = variant("v", of: digest([]), body)
        let missing = digest(Array("nothing".utf8))
        try stores[0].inOneTransaction { () throws(StoreError) in
            try stores[0].storeVariant(entry, body: body, generation: 1)
            for name in ["cache.sqlite", "cache.sqlite-wal", "cache.sqlite-shm"] {
                rename("\(folder.path)/\(name)", "\(folder.path)/away.\(name)")
            }
            // Finds no entry, and so looks whether the index is still there. The transaction continues in it all the
            // same.
            #expect(try stores[0].variant(key: missing, of: entry.originalDigest) == nil)
            #expect(try stores[0].variant(key: entry.key, of: entry.originalDigest)?.body == body)
        }
        // The next store looks where the index lies.
        #expect(try stores[0].storeVariant(entry, body: body, generation: stores[0].generationNow()))
        #expect(try stores[1].variant(key: entry.key, of: entry.originalDigest)?.body == body)
    }

    @Test func `another program's database is refused and left as it is`() throws {
        try DiskStore(folder: folder.path).close()
        try folder.sql("PRAGMA application_id = 7")
        let error = #expect(throws: StoreError.self) { _ = try DiskStore(folder: folder.path) }
        #expect(error?.code == .unavailable)
    }

    @Test func `verify finds and repairs faults in both directions`() throws {
        let store = try DiskStore(folder: folder.path)
        let bodies = (0..<3).map { bytes(100_000, seed: $0) }
        for body in bodies {
            try store.storeOriginal(record("http://a/\(body[0])", body), body: body, generation: 1)
        }
        let orphan = digest([1])
        mkdir("\(folder.path)/bodies/\(orphan.prefix(2))", 0o700)
        folder.overwrite("bodies/\(orphan.prefix(2))/\(orphan)", at: 0, with: [1])
        unlink(store.files.path(digest(bodies[0])))
        folder.overwrite("bodies/\(digest(bodies[1]).prefix(2))/\(digest(bodies[1]))", at: 5, with: [1, 2, 3, 4])
        let found = try store.verify()
        #expect(found.faults == [.orphanFiles: 1, .missingFiles: 1, .damagedBodies: 1])
        #expect(!found.isIndexDamaged && !found.isClean)
        #expect(try store.verify(repair: true).isRepaired)
        #expect(try store.verify().isClean && store.rebuilds == 0)
        #expect(try store.originalBody(digest: digest(bodies[2])) == bodies[2])
        #expect(access("\(folder.path)/bodies/\(orphan.prefix(2))/\(orphan)", F_OK) != 0)
    }

    @Test(.enabled(if: SmallDisk.isPermitted, "needs leave to mount a tmpfs"))
    func `a full disk is an error that leaves nothing torn`() throws {
        let disk = try #require(SmallDisk(at: folder.path, kilobytes: 8_192))
        defer { disk.unmount() }
        var configuration = DiskStoreConfiguration()
        configuration.freeSpace = 0
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        defer { store.close() }
        var stored: [(VariantEntry, [UInt8])] = []
        var failure: StoreError?
        for number in 0..<200 where failure == nil {
            let body = bytes(number % 2 == 0 ? 100_000 : 20_000, seed: number)
            let entry = variant("\(number)", of: digest([]), body)
            do throws(StoreError) {
                try store.storeVariant(entry, body: body, generation: 1)
                stored.append((entry, body))
            } catch {
                failure = error
            }
        }
        #expect(failure?.code == .full)
        #expect(stored.count > 3)
        for (entry, body) in stored {
            #expect(try store.variant(key: entry.key, of: entry.originalDigest)?.body == body)
        }
        let report = try store.verify()
        #expect(report.isClean, "\(report)")
    }

    @Test func `bad digests and lengths are refused`() throws {
        let store = try DiskStore(folder: folder.path)
        var entry = variant("v", of: digest([]), [1])
        entry.digest = "../../etc"
        #expect(throws: StoreError.self) { try store.storeVariant(entry, body: [1], generation: 1) }
        #expect(throws: StoreError.self) {
            try store.storeVariant(variant("v", of: digest([]), [1]), body: [1, 2], generation: 1)
        }
        store.close()
        let error = #expect(throws: StoreError.self) { try store.generationNow() }
        #expect(error?.code == .closed)
    }

    @Test func `listing, inspecting and trimming`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(100, seed: 1)
        try store.storeOriginal(record("http://a/", body), body: body, generation: 1)
        let entry = variant("v", of: digest(body), body)
        try store.storeVariant(entry, body: body, generation: 1)
        #expect(try store.originals().map(\.hasBody) == [true])
        #expect(try store.variants().map(\.entry) == [entry])
        #expect(try store.inspect("http://a/").variants.count == 1)
        #expect(try store.inspect(String(entry.key.prefix(6))).variants.map(\.entry) == [entry])
        #expect(try store.inspect(digest(body)).originals.count == 1)
        #expect(try store.inspect("nothing").isEmpty)
        var request = TrimRequest()
        request.olderThan = .seconds(1_000_000)
        let result = try store.trim(request)
        #expect(result.variants == 1 && result.originals == 0)
        request.olderThan = nil
        request.unusedFor = .seconds(-1)
        #expect(try store.trim(request).originals == 1)
        #expect(try store.originals().map(\.hasBody) == [false])
        #expect(try store.verify().isClean)
    }
}
