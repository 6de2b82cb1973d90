import Glibc
import Testing

@testable import Pipeline

/// Bytes that several entries have: stored once while that is known, and gone with the last of them in any case.
@Suite struct DiskSharingTests {
    let folder = CacheFolder()

    /// Stores a variant of an original of its own, so that a purge removes it alone.
    private func put(_ name: String, _ body: [UInt8], in store: DiskStore) throws {
        let entry = variant(name, of: digest(Array("original of \(name)".utf8)), body)
        #expect(
            try store.storeVariant(entry, body: body, generation: try store.generationNow(), source: "http://\(name)/"))
    }

    private func get(_ name: String, from store: DiskStore) throws -> [UInt8]? {
        let original = digest(Array("original of \(name)".utf8))
        return try store.variant(key: digest(Array(name.utf8)), of: original)?.body
    }

    private func places(_ store: DiskStore) throws -> Set<Int> {
        try store.perform { index throws(StoreError) in
            Set(
                try index.connection.rows(
                    "SELECT place FROM variants UNION ALL SELECT place FROM originals"
                ) { $0.isNull(0) ? -1 : $0.integer(0) })
        }
    }

    private func sharers(_ store: DiskStore) throws -> Int? {
        try store.perform { index throws(StoreError) in
            try index.connection.first("SELECT count(*) FROM shared") { $0.integer(0) }
        }
    }

    @Test(arguments: [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]])
    func `bytes of three variants and an original lie in one slot until the last has gone`(order: [Int]) throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(3_000, seed: 1)
        let names = ["a", "b", "c"]
        for name in names { try put(name, body, in: store) }
        try store.storeOriginal(record("http://d/", body), body: body, generation: 1)
        try put("e", bytes(2_000, seed: 2), in: store)
        #expect(try places(store) == [0, 6] && sharers(store) == 4)
        for (gone, next) in order.enumerated() {
            _ = try store.purge(source: next == 3 ? "http://d/" : "http://\(names[next])/")
            let left = order.dropFirst(gone + 1)
            for other in left where other < 3 { #expect(try get(names[other], from: store) == body) }
            #expect(try store.originalBody(digest: digest(body)) == (left.contains(3) ? body : nil))
            #expect(try sharers(store) == (left.count > 1 ? left.count : 0))
            #expect(try store.verify().isClean)
        }
        let free = try store.perform { index throws(StoreError) in
            try index.connection.rows("SELECT place, units FROM free") { [$0.integer(0), $0.integer(1)] }
        }
        #expect(free == [[0, 6]])
    }

    @Test(arguments: [2_000, 100_000])
    func `bytes whose holder was forgotten are stored again, and each copy goes with its own`(length: Int) throws {
        var store = try DiskStore(folder: folder.path)
        let body = bytes(length, seed: 1)
        try put("a", body, in: store)
        try put("b", body, in: store)
        store.close()
        unlink("\(folder.path)/holders")
        store = try DiskStore(folder: folder.path)
        try put("c", body, in: store)
        try put("d", body, in: store)
        // A file is found by its name whatever was forgotten.
        #expect(try places(store) == (length == 2_000 ? [0, 4] : [-1]))
        for name in ["a", "d"] {
            _ = try store.purge(source: "http://\(name)/")
            #expect(try store.verify().isClean)
        }
        #expect(try get("b", from: store) == body && get("c", from: store) == body)
        // Garbled: what it says is compared with the row, here of other bytes or of none.
        let other = bytes(2_500, seed: 2)
        let row = try store.perform { index throws(StoreError) in
            try index.connection.first("SELECT id FROM variants LIMIT 1") { $0.integer(0) }
        }
        for number in [try #require(row) << 1, 1 << 40, .max] {
            let key = try #require(DigestKey(digest(other)))
            KeyFile(path: "\(folder.path)/holders").insert(key.ghost, number: number, buckets: KeyFile.leastBuckets)
            try put("e", other, in: store)
            #expect(try get("e", from: store) == other)
            _ = try store.purge(source: "http://e/")
        }
        #expect(try store.verify().isClean)
    }

    @Test func `a transaction that is undone leaves no holder that counts`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(2_000, seed: 1)
        #expect(throws: (any Error).self) {
            try store.together { () throws(StoreError) in
                let entry = variant("a", of: digest([]), body)
                try store.storeVariant(entry, body: body, generation: try store.generationNow())
                throw StoreError(.io, "some trouble")
            }
        }
        // Takes the row that was undone, with other bytes.
        try store.storeVariant(variant("a", of: digest([]), [1]), body: [1], generation: 1)
        try put("b", body, in: store)
        #expect(try get("b", from: store) == body && sharers(store) == 0)
        #expect(try store.variant(key: digest(Array("a".utf8)))?.body == [1])
        #expect(try store.statistics().variants.corrupt == 0)
        #expect(try store.verify().isClean)
    }

    @Test func `damaged bytes go with all that share them`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(2_000, seed: 1)
        for name in ["a", "b", "c"] { try put(name, body, in: store) }
        folder.overwrite("bodies.pack", at: 100, with: [1, 2, 3])
        #expect(try get("b", from: store) == nil)
        let counters = try store.statistics().variants
        #expect(counters.entries == 0 && counters.corrupt == 1)
        #expect(try sharers(store) == 0 && store.verify().isClean)
    }

    @Test func `which entries share a slot is found wrong, and mended`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(2_000, seed: 1)
        for name in ["a", "b", "c"] { try put(name, body, in: store) }
        for damage in [
            "DELETE FROM shared WHERE entry = (SELECT min(entry) FROM shared)", "UPDATE shared SET place = 9",
        ] {
            try folder.sql(damage)
            #expect(try store.verify().wrongSlots > 0)
            _ = try store.verify(repair: true)
            #expect(try sharers(store) == 3 && store.verify().isClean)
        }
        for name in ["b", "a", "c"] { _ = try store.purge(source: "http://\(name)/") }
        #expect(try store.verify().isClean)
    }

    @Test func `a table of keys keeps the latest of a bucket, and grows by its length`() throws {
        mkdir(folder.path, 0o700)
        let keys = KeyFile(path: "\(folder.path)/keys")
        #expect(keys.buckets == 0)
        keys.begin()
        #expect(keys.buckets == 256)
        for key in 1...2_000 { keys.insert(key, number: key + 1, buckets: 256) }
        let kept = (1...2_000).filter { keys.number(of: $0, buckets: 256) == $0 + 1 }
        #expect(kept.count > 1_000 && kept.suffix(256).elementsEqual(1_745...2_000))
        keys.double(from: 256)
        #expect(keys.buckets == 512)
        #expect((1...2_000).filter { keys.number(of: $0, buckets: 512) == $0 + 1 } == kept)
        // Nine of one bucket: the first has gone, whatever the numbers; one that comes again is the latest.
        let bucket = (1...100_000).filter { keys.number(of: $0, buckets: 512) == nil }
        let few = KeyFile(path: "\(folder.path)/few")
        few.begin()
        for key in bucket.prefix(8) { few.insert(key, number: 1_000_000 - key, buckets: 1) }
        few.insert(bucket[0], number: 7, buckets: 1)
        few.insert(bucket[8], number: 1, buckets: 1)
        #expect(few.number(of: bucket[0], buckets: 1) == 7 && few.number(of: bucket[8], buckets: 1) == 1)
        #expect(few.number(of: bucket[1], buckets: 1) == nil && few.number(of: bucket[2], buckets: 1) != nil)
        // Cut off, as by a kill while it grew.
        truncate("\(folder.path)/keys", 300 * 128)
        keys.forget()
        #expect(keys.buckets == 256)
    }
}
