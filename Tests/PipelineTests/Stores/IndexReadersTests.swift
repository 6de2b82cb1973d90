@testable import PipelineCaching
@testable import PipelineSupport
import Foundation
import Glibc
import Synchronization
import Testing
import Variants

@testable import Pipeline

/// Look-ups do not wait for writers, and find everything stored before.
@Suite struct IndexReadersTests {
    let folder = CacheFolder()

    private func original(_ name: String) -> String { digest(Array("original of \(name)".utf8)) }

    private func put(_ name: String, _ body: [UInt8], in store: DiskStore) throws {
        let entry = variant(name, of: original(name), body)
        #expect(
            try store.storeVariant(entry, body: body, generation: try store.generationNow(), source: "http://\(name)/"))
    }

    private func get(_ name: String, from store: DiskStore) throws -> [UInt8]? {
        try store.variant(key: digest(Array(name.utf8)), of: original(name))?.body
    }

    @Test func `a thousand look-ups end while a transaction that stores is held`() throws {
        let store = try DiskStore(folder: folder.path)
        let small = bytes(5_000, seed: 1)
        let body = bytes(300_000, seed: 2)
        let generation = try store.generationNow()
        try put("a", small, in: store)
        #expect(try store.storeOriginal(record("http://b/", body), body: body, generation: 1))
        try store.inOneTransaction { () throws(StoreError) in
            // In the lock of the index, and in a transaction that has begun to write.
            let entry = variant("held", of: original("held"), small)
            _ = try store.storeVariant(entry, body: small, generation: 1)
            // Another thread: this one would look in the transaction itself.
            let thread = OwnedThreads(count: 3)
            let found = Mutex(0)
            for number in 0..<1_002 {
                thread.submit {
                    let isFound: Bool? =
                        switch number % 6 {
                        case 0: try? self.get("a", from: store) == small
                        case 1: try? store.originalBody(digest: digest(body)) == body
                        case 2: try? store.records(source: "http://b/").count == 1
                        case 3: try? store.holdsVariant(key: entry.key, of: entry.originalDigest) == false
                        case 4: try? store.holdsOriginal(digest: digest(body))
                        default: try? store.generationNow() == generation
                        }
                    if isFound == true { found.withLock { $0 += 1 } }
                }
            }
            thread.drain()
            #expect(found.withLock { $0 } == 1_002)
        }
        #expect(try get("held", from: store) == small)
        let counters = try store.statistics()
        #expect(counters.variants.hits == 168 && counters.originals.hits == 167 && counters.records.hits == 167)
        store.close()
    }

    @Test func `what another store or process has stored, purged or replaced is seen by the next look-up`() throws {
        let (reader, writer) = (try DiskStore(folder: folder.path), try DiskStore(folder: folder.path))
        for round in 0..<20 {
            let body = [UInt8(round), 1, 2]
            try put("a", body, in: writer)
            #expect(try get("a", from: reader) == body)
            if round % 5 == 4 {
                _ = try writer.purge(source: "http://a/")
                #expect(try get("a", from: reader) == nil)
            }
        }
        reader.close()
        #expect(throws: StoreError.self) { try get("a", from: reader) }
    }

    @Test func `an index that was replaced or deleted is not read on`() throws {
        let store = try DiskStore(folder: folder.path)
        try put("a", [1], in: store)
        #expect(try get("a", from: store) == [1])
        for suffix in ["", "-wal", "-shm"] { unlink(folder.path + "/cache.sqlite" + suffix) }
        #expect(try get("a", from: store) == nil)
        try put("a", [2], in: store)
        #expect(try get("a", from: store) == [2])
        #expect(try store.verify().isClean)
    }

    @Test func `access counts and look-ups reach the index although nothing is stored`() throws {
        var store = try DiskStore(folder: folder.path)
        try put("a", [1], in: store)
        for _ in 0..<5_000 { #expect(try get("a", from: store) != nil) }
        for _ in 0..<3 { #expect(try get("b", from: store) == nil) }
        store.close()
        store = try DiskStore(folder: folder.path)
        let counters = try store.statistics().variants
        #expect(counters.hits == 5_000 && counters.misses == 3)
        #expect(try store.variants().map(\.uses) == [255])
    }
}
