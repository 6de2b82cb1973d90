import Glibc
import Synchronization
import Testing
import Variants

@testable import Pipeline

@Suite struct DiskSlotsTests {
    let folder = CacheFolder()

    private func store(_ budget: Int = 1 << 30) throws -> DiskStore {
        var configuration = DiskStoreConfiguration()
        configuration.variants = budget
        return try DiskStore(folder: folder.path, configuration: configuration)
    }

    private func put(_ name: String, _ length: Int, cost: Double = 1, in store: DiskStore) throws(StoreError) {
        let body = bytes(length, seed: name.hashValue)
        var entry = variant(name, of: digest([]), body)
        entry.cost = cost
        guard try store.storeVariant(entry, body: body, generation: try store.generationNow()) else {
            throw StoreError(.full, "\(name) was not taken")
        }
    }

    /// First units of the slots, by name.
    private func place(_ name: String, _ store: DiskStore) throws -> Int? {
        let key = try #require(DigestKey(digest(Array(name.utf8))))
        return try store.perform { index throws(StoreError) in
            try index.connection.first("SELECT place FROM variants WHERE key = ?1", .digest(key)) { $0.integer(0) }
        }
    }

    private func free(_ store: DiskStore) throws -> [[Int]] {
        try store.perform { index throws(StoreError) in
            try index.connection.rows("SELECT place, units FROM free ORDER BY place") {
                [$0.integer(0), $0.integer(1)]
            }
        }
    }

    private func remove(_ names: [String], from store: DiskStore) throws {
        try store.perform { index throws(StoreError) in
            try index.write { connection throws(StoreError) in
                for name in names {
                    guard let key = DigestKey(digest(Array(name.utf8))) else { continue }
                    let ids = try connection.rows("SELECT id FROM variants WHERE key = ?1", .digest(key)) {
                        $0.integer(0)
                    }
                    for id in ids { try index.removeRow(.variants, id) }
                }
            }
        }
    }

    @Test func `a body takes whole units, and the smallest gap that suffices`() throws {
        let store = try store()
        for (name, length) in [("a", 1), ("b", 1_500), ("c", 512), ("d", 600), ("e", 513)] {
            try put(name, length, in: store)
        }
        #expect(try ["a", "b", "c", "d", "e"].map { try place($0, store) } == [0, 1, 4, 5, 7])
        try remove(["b", "d"], from: store)
        #expect(try free(store) == [[1, 3], [5, 2]])
        try put("f", 1_000, in: store)
        try put("g", 1_000, in: store)
        #expect(try place("f", store) == 5 && place("g", store) == 1)
        #expect(try free(store) == [[3, 1]])
        try put("h", 2_000, in: store)
        #expect(try place("h", store) == 9)
        #expect(try store.verify().isClean)
    }

    @Test func `neighbouring gaps become one, whichever goes first`() throws {
        let store = try store()
        let names = ["a", "b", "c", "d", "e"]
        for order in [["b", "c", "d"], ["d", "c", "b"], ["b", "d", "c"]] {
            for name in names { try put(name, 5_000, in: store) }
            for name in order { try remove([name], from: store) }
            #expect(try free(store) == [[10, 30]])
            #expect(try store.verify().isClean)
            _ = try store.clear()
        }
        for name in names { try put(name, 5_000, in: store) }
        try remove(["d", "b", "c"], from: store)
        #expect(try free(store) == [[10, 30]])
    }

    @Test func `a slot is given away only after the transaction that freed it`() throws {
        let store = try store(2_100)
        try put("a", 2_000, cost: 1, in: store)
        // Undone: what it evicted is there, whole.
        #expect(throws: StoreError.self) {
            try store.together { () throws(StoreError) in
                try put("b", 2_000, cost: 10, in: store)
                throw StoreError(.io, "some trouble")
            }
        }
        #expect(try store.variant(key: digest(Array("a".utf8))) != nil)
        try put("b", 2_000, cost: 10, in: store)
        #expect(try place("b", store) == 4)
        try put("c", 2_000, cost: 100, in: store)
        #expect(try place("c", store) == 0)
        #expect(try free(store) == [[4, 4]])
        #expect(try store.statistics().variants.corrupt == 0)
        #expect(try store.verify().isClean)
    }

    @Test func `a slot given away between look-up and reading is a miss and no damage`() throws {
        let store = try store(2_100)
        try put("a", 2_000, cost: 1, in: store)
        let key = try #require(DigestKey(digest(bytes(2_000, seed: "a".hashValue))))
        let (holder, body) = try #require(
            try store.perform { index throws(StoreError) in try index.holder(of: key, length: 2_000) })
        for (name, cost) in [("b", 10.0), ("c", 100)] { try put(name, 2_000, cost: cost, in: store) }
        let located = DiskStore.Located(row: holder.row, digest: key, cost: 1, body: body)
        #expect(try store.found(in: .variants, longest: .max) { _ in ((), located) } == nil)
        let counters = try store.statistics().variants
        #expect(counters.corrupt == 0 && counters.misses == 1)
        #expect(try store.variant(key: digest(Array("c".utf8))) != nil)
    }

    @Test func `slots that overlap and slots that are lost are found and mended`() throws {
        let store = try store()
        for name in ["a", "b", "c"] { try put(name, 1_000, in: store) }
        try remove(["b"], from: store)
        try folder.sql("DELETE FROM free")
        #expect(try store.verify().wrongSlots == 1)
        _ = try store.verify(repair: true)
        #expect(try free(store) == [[2, 2]])
        try folder.sql("UPDATE free SET units = 3")
        #expect(try store.verify().wrongSlots == 1)
        _ = try store.verify(repair: true)
        #expect(try free(store) == [[2, 2]] && store.verify().isClean)
        #expect(try store.variants().count == 2)
    }

    @Test func `looking something up need not wait for who waits to write`() throws {
        var configuration = DiskStoreConfiguration()
        configuration.busyMilliseconds = 60_000
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        try put("a", 1_000, in: store)
        // Another process in the middle of a transaction.
        let other = try SQLiteConnection(path: "\(folder.path)/cache.sqlite", busyMilliseconds: 0)
        try other.run("BEGIN IMMEDIATE")
        // A thread of its own: one that tests share may come to its turn when the time for waiting is over.
        let writer = OwnedThreads(count: 1)
        let isStored = Mutex(false)
        writer.submit { [self] in
            let stored: Void? = try? put("b", 1_000, in: store)
            isStored.withLock { $0 = stored != nil }
        }
        for _ in 0..<50 { #expect(try store.variant(key: digest(Array("a".utf8))) != nil) }
        try other.run("COMMIT")
        writer.stop()
        #expect(isStored.withLock { $0 })
        #expect(try store.variant(key: digest(Array("b".utf8))) != nil)
        other.close()
    }

    @Test func `the log of the index grows while somebody reads in it, and is begun anew when nobody does`() throws {
        let store = try store()
        func pages() throws -> Int {
            try store.perform { index throws(StoreError) in try index.connection.pagesInLog }
        }
        var number = 0
        /// Stores until so many pages are in the log, or it has begun anew; by the pages that a transaction leaves there.
        func fill(to limit: Int) throws -> Bool {
            var before = try pages()
            while before < limit {
                try store.together { () throws(StoreError) in
                    for _ in 0..<50 {
                        number += 1
                        try put("\(number)", 10, in: store)
                    }
                }
                let now = try pages()
                if now < before { return false }
                before = now
            }
            return true
        }
        try put("first", 10, in: store)
        let reader = try SQLiteConnection(path: "\(folder.path)/cache.sqlite", busyMilliseconds: 0)
        try reader.run("BEGIN")
        _ = try reader.first("SELECT count(*) FROM variants") { $0.integer(0) }
        #expect(try fill(to: DiskSchema.logPages * 2))
        try reader.run("COMMIT")
        #expect(try !fill(to: DiskSchema.logPages * 4))
        #expect(try fill(to: DiskSchema.logPages / 2))
        reader.close()
        #expect(try store.verify().isClean)
    }

    @Test func `who has waited as long as the settings say is told`() throws {
        var configuration = DiskStoreConfiguration()
        configuration.busyMilliseconds = 20
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        let other = try SQLiteConnection(path: "\(folder.path)/cache.sqlite", busyMilliseconds: 0)
        try other.run("BEGIN IMMEDIATE")
        let error = #expect(throws: StoreError.self) { try put("b", 1_000, in: store) }
        #expect(error?.code == .busy)
        other.close()
        try put("b", 1_000, in: store)
    }

    @Test func `a table of evicted keys finds what is above the floor, at any size`() {
        mkdir(folder.path, 0o700)
        let ghosts = KeyFile(path: "\(folder.path)/ghosts.variants")
        #expect(!ghosts.contains(1, above: 0, last: 9, buckets: 0))
        for number in 1...500 { ghosts.insert(number &* 7_919, number: number, buckets: 256) }
        func found(_ buckets: Int, above floor: Int = 0, last: Int = 500) -> Int {
            (1...500).count { ghosts.contains($0 &* 7_919, above: floor, last: last, buckets: buckets) }
        }
        #expect(found(256) == 500 && found(256, above: 400) == 100 && found(256, last: 10) == 10)
        ghosts.double(from: 256)
        #expect(found(512) == 500)
        #expect(!ghosts.contains(3, above: 0, last: 500, buckets: 512))
        // Placed anew, it counts once, under the later number.
        ghosts.insert(7_919, number: 501, buckets: 512)
        #expect(ghosts.contains(7_919, above: 500, last: 501, buckets: 512))
        // Garbage is no key, and a link is not followed.
        truncate("\(folder.path)/ghosts.variants", 100)
        #expect(found(512) == 0)
        unlink("\(folder.path)/ghosts.variants")
        symlink("/etc/hostname", "\(folder.path)/ghosts.variants")
        ghosts.detach()
        ghosts.insert(5, number: 1, buckets: 256)
        #expect(ghosts.contains(5, above: 0, last: 1, buckets: 256))
    }

    @Test func `digests are the same as text and as bytes`() throws {
        for seed in 0..<50 {
            let text = digest([UInt8(seed)])
            let key = try #require(DigestKey(text))
            #expect(key.text == text && key.withBytes { DigestKey(bytes: $0) } == key)
            let heads = try #require(DigestKey.heads(beginning: String(text.prefix(1 + seed))))
            #expect(heads.contains(key.head))
            #expect(seed < 16 || heads.count == 1)
        }
        let text = digest([])
        #expect(DigestKey(text.uppercased()) == nil && DigestKey(text + "0") == nil && DigestKey("") == nil)
        #expect(DigestKey(String(text.dropLast()) + "g") == nil)
    }
}
