@testable import PipelineCaching
import Glibc
import Testing

@testable import Pipeline

/// Bodies that several entries have: stored once, and removed with the last entry.
@Suite struct DiskSharingTests {
    let folder = CacheFolder()

    /// Stores a variant of a separate original, so that a purge removes it alone.
    private func put(_ name: String, _ body: [UInt8], in store: DiskStore) throws {
        let entry = variant(name, of: digest(Array("original of \(name)".utf8)), body)
        #expect(
            try store.storeVariant(entry, body: body, generation: try store.generationNow(), source: "http://\(name)/"))
    }

    private func get(_ name: String, from store: DiskStore) throws -> [UInt8]? {
        let original = digest(Array("original of \(name)".utf8))
        return try store.variant(key: digest(Array(name.utf8)), of: original)?.body
    }

    /// The number of entries of each body.
    private func counts(_ store: DiskStore) throws -> [Int] {
        try store.perform { index throws(StoreError) in
            try index.connection.rows("SELECT entries FROM bodies ORDER BY id") { $0.integer(0) }
        }
    }

    @Test(arguments: [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]], [3_000, 100_000])
    func `a body of three variants and an original is stored once until the last is gone`(
        order: [Int], length: Int
    ) throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(length, seed: 1)
        let names = ["a", "b", "c"]
        for name in names { try put(name, body, in: store) }
        try store.storeOriginal(record("http://d/", body), body: body, generation: store.generationNow())
        try put("e", bytes(2_000, seed: 2), in: store)
        #expect(try counts(store) == [4, 1])
        for (gone, next) in order.enumerated() {
            _ = try store.purge(source: next == 3 ? "http://d/" : "http://\(names[next])/")
            let left = order.dropFirst(gone + 1)
            for other in left where other < 3 { #expect(try get(names[other], from: store) == body) }
            #expect(try store.originalBody(digest: digest(body)) == (left.contains(3) ? body : nil))
            #expect(try counts(store) == (left.isEmpty ? [1] : [left.count, 1]))
            #expect(try store.verify().isClean)
        }
        #expect(!store.files.isThere(digest(body)))
    }

    @Test func `a transaction that is undone leaves no body`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(2_000, seed: 1)
        #expect(throws: (any Error).self) {
            try store.inOneTransaction { () throws(StoreError) in
                let entry = variant("a", of: digest([]), body)
                try store.storeVariant(entry, body: body, generation: try store.generationNow())
                throw StoreError(.io, "an error")
            }
        }
        #expect(try counts(store) == [])
        try put("b", body, in: store)
        #expect(try get("b", from: store) == body && counts(store) == [1])
        #expect(try store.statistics().variants.corrupt == 0)
        #expect(try store.verify().isClean)
    }

    @Test(arguments: [2_000, 100_000]) func `a damaged body is gone for all that share it`(length: Int) throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(length, seed: 1)
        for name in ["a", "b", "c"] { try put(name, body, in: store) }
        if length == 2_000 {
            try folder.sql("UPDATE bodies SET data = zeroblob(length)")
        } else {
            folder.overwrite("bodies/\(digest(body).prefix(2))/\(digest(body))", at: 100, with: [1, 2, 3])
        }
        for name in ["b", "a", "c"] { #expect(try get(name, from: store) == nil) }
        let counters = try store.statistics().variants
        #expect(counters.entries == 0 && counters.corrupt == 3 && counters.bytes == 0)
        #expect(try counts(store) == [] && store.verify().isClean)
        try put("a", body, in: store)
        #expect(try get("a", from: store) == body)
    }

    @Test func `a body that another entry names by damage is not answered`() throws {
        let store = try DiskStore(folder: folder.path)
        try put("a", bytes(2_000, seed: 1), in: store)
        try put("b", bytes(2_000, seed: 2), in: store)
        // The checksum covers the digest, so that not even a wrong digest beside a right checksum passes.
        try folder.sql(
            """
            UPDATE bodies SET (data, checksum) = (SELECT data, checksum FROM bodies AS other WHERE other.id = 1) WHERE id = 2
            """)
        #expect(try get("b", from: store) == nil && get("a", from: store) == bytes(2_000, seed: 1))
    }

    @Test func `a wrong number of entries is found, and a repair begins an empty index`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(2_000, seed: 1)
        for name in ["a", "b", "c"] { try put(name, body, in: store) }
        for count in [1, 7] {
            try folder.sql("UPDATE bodies SET entries = \(count)")
            #expect(try store.verify().isIndexDamaged)
            #expect(try store.verify(repair: true).isRepaired)
            #expect(try counts(store) == [] && store.verify().isClean)
            for name in ["a", "b", "c"] { try put(name, body, in: store) }
        }
        for name in ["b", "a", "c"] { _ = try store.purge(source: "http://\(name)/") }
        #expect(try store.verify().isClean && counts(store) == [])
    }
}
