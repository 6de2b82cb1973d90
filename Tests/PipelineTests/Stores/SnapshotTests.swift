import Foundation
import Glibc
import Synchronization
import Testing
import Variants

@testable import Pipeline

/// Look-ups that follow each other closely share a snapshot: what others have done meanwhile is found as a store promises.
@Suite struct SnapshotTests {
    let folder = CacheFolder()

    private func settings(least: Int = 1, lifetime: UInt64 = 3_600_000_000_000) -> Snapshot.Settings {
        var settings = Snapshot.Settings()
        (settings.least, settings.lifetime) = (least, lifetime)
        return settings
    }

    /// - Parameter lifetime: nanoseconds.
    private func store(
        least: Int = 1, lifetime: UInt64 = 3_600_000_000_000, variants: Int = 1 << 30
    ) throws -> DiskStore {
        var configuration = DiskStoreConfiguration()
        configuration.snapshots = settings(least: least, lifetime: lifetime)
        configuration.variants = variants
        return try DiskStore(folder: folder.path, configuration: configuration)
    }

    /// One of its own for each, so that a purge removes no other.
    private func original(_ name: String) -> Digest { digest(Array("original of \(name)".utf8)) }

    private func put(_ name: String, _ body: [UInt8], in store: DiskStore) throws {
        let entry = variant(name, of: original(name), body)
        let generation = try store.generationNow()
        #expect(try store.storeVariant(entry, body: body, generation: generation, source: "http://\(name)/"))
    }

    private func get(_ name: String, from store: DiskStore) throws -> [UInt8]? {
        try store.variant(key: digest(Array(name.utf8)), of: original(name))?.body
    }

    @Test func `a snapshot is held from the last of so many look-ups on, and no longer than its time`() {
        var snapshot = Snapshot(settings(least: 3, lifetime: 100))
        let counted = [1_000, 1_040, 1_099, 1_100, 1_150, 1_160, 1_200, 1_400, 1_450, 1_499, 1_500].map { now in
            (isOver: snapshot.count(now: UInt64(now)), isDense: snapshot.isDense)
        }
        // Closely followed by more, the next one is held from its beginning; after a pause, or after a few, it is not.
        #expect(
            counted.map(\.isOver) == [true, false, false, true, false, false, true, true, false, false, true])
        #expect(
            counted.map(\.isDense) == [false, false, true, true, true, true, true, false, false, true, true])
        #expect(snapshot.isOver(now: 1_600) && !snapshot.isOver(now: 1_599))
    }

    @Test func `a look-up that finds nothing ends the snapshot, and so many more begin the next`() throws {
        let (reader, writer) = (try store(least: 3), try store())
        for (round, isHeld) in [false, true, false, true].enumerated() {
            let (before, after) = ([UInt8(round)], [UInt8(round), 1])
            try put("a", before, in: writer)
            #expect(try get("a", from: reader) == before)
            try put("a", after, in: writer)
            #expect(try get("a", from: reader) == (isHeld ? before : after))
            if isHeld { #expect(try get("b", from: reader) == nil) }
        }
    }

    @Test func `who has its turn after another process finds what that has stored by now`() async throws {
        var configuration = PipelineConfiguration()
        configuration.cacheFolder = folder.path
        let tiers = try CacheTiers(configuration, readers: OwnedThreads(count: 1), snapshots: settings())
        let (disk, other) = (try #require(tiers.disk), try store())
        let source = "http://o/"
        let records = [record(source, [1]), record(source, [2])]
        try other.storeOriginal(records[0], body: [1], generation: try other.generationNow())
        #expect(try disk.records(source: source) == [records[0]])
        try other.storeOriginal(records[1], body: [2], generation: try other.generationNow())
        #expect(try disk.records(source: source) == [records[0]])
        let found = try await tiers.once(.original, source) {
            (try? disk.records(source: source)) ?? []
        } isShared: { _, _ in
            true
        } work: {
            []
        }
        #expect(found == [records[1]])
        await tiers.close()
    }

    @Test func `what others store is found at once, and what they store in its place after a refresh`() throws {
        let (reader, writer) = (try store(), try store())
        try put("a", [1], in: writer)
        #expect(try get("a", from: reader) == [1])
        try put("b", [2], in: writer)
        #expect(try get("b", from: reader) == [2])
        #expect(try get("a", from: reader) == [1])
        try put("a", [3, 4], in: writer)
        // As it was a moment ago, whose body is there.
        #expect(try get("a", from: reader) == [1])
        reader.refresh()
        #expect(try get("a", from: reader) == [3, 4])
        // What it writes itself it finds.
        try put("a", [5], in: reader)
        #expect(try get("a", from: reader) == [5])
        let counters = try reader.statistics().variants
        #expect(counters.hits == 6 && counters.misses == 0)
    }

    @Test func `what others purge is gone at once`() throws {
        let (reader, writer) = (try store(), try store())
        for name in ["a", "b"] { try put(name, [1], in: writer) }
        #expect(try get("a", from: reader) == [1])
        _ = try writer.purge(source: "http://a/")
        #expect(try get("a", from: reader) == nil)
        #expect(try get("b", from: reader) == [1])
        #expect(try reader.statistics().variants.misses == 1)
    }

    @Test func `a purge that has told others and not committed is waited for by no snapshot`() throws {
        let (reader, writer) = (try store(), try store())
        try put("a", [1], in: writer)
        try writer.perform { index throws(StoreError) in
            try index.write { connection throws(StoreError) in
                let next = try index.nextGeneration()
                try index.shared.write(next)
                // Still there, and in no snapshot in which it would still be there afterwards.
                #expect((try? get("a", from: reader)) == [1])
                for id in try connection.rows("SELECT id FROM variants", read: { $0.integer(0) }) {
                    try index.removeRow(.variants, id)
                }
            }
        }
        #expect(try get("a", from: reader) == nil)
    }

    @Test func `a body that was moved since is looked up once more`() throws {
        let (reader, writer) = (try store(), try store(variants: 3_000))
        let (before, after) = (bytes(2_000, seed: 1), bytes(1_000, seed: 2))
        try put("a", before, in: writer)
        #expect(try get("a", from: reader) == before)
        // Its slot is free, and then another's.
        try put("a", after, in: writer)
        try put("b", bytes(1_900, seed: 3), in: writer)
        #expect(try get("a", from: reader) == after)
        let counters = try reader.statistics().variants
        #expect(counters.hits == 2 && counters.misses == 0 && counters.corrupt == 0)
    }

    @Test func `damaged rows are judged by what is there now`() throws {
        let (reader, writer) = (try store(), try store())
        for name in ["a", "b"] { try put(name, [1], in: writer) }
        for source in ["http://o/", "http://p/"] {
            try writer.storeOriginal(record(source, [7]), body: [7], generation: try writer.generationNow())
        }
        for table in ["variants", "records"] { try folder.sql("UPDATE \(table) SET format = 'none'") }
        try put("d", [4], in: writer)
        #expect(try get("d", from: reader) == [4])
        // Sound by now, which the snapshot does not show.
        try writer.storeOriginal(record("http://p/", [7]), body: [7], generation: try writer.generationNow())
        #expect(try reader.records(source: "http://p/").count == 1)
        #expect(try get("d", from: reader) == [4])
        let key = try #require(DigestKey(digest(Array("a".utf8))))
        _ = try writer.perform { index throws(StoreError) in
            try index.write { connection throws(StoreError) in
                try connection.run("UPDATE variants SET format = 'png' WHERE key = ?1", .digest(key))
            }
        }
        #expect(try get("a", from: reader) == [1])
        #expect(try reader.statistics().variants.corrupt == 0)
        // What is damaged still goes.
        #expect(try get("d", from: reader) == [4])
        #expect(try get("b", from: reader) == nil)
        #expect(try get("a", from: reader) == [1])
        #expect(try reader.records(source: "http://o/").isEmpty)
        let counters = try reader.statistics()
        #expect(counters.variants.corrupt == 1 && counters.variants.misses == 1 && counters.variants.entries == 2)
        #expect(counters.records.corrupt == 1 && counters.records.misses == 1)
    }

    @Test(arguments: [200, 100_000]) func `what is no longer damaged stays`(length: Int) throws {
        let store = try store()
        try put("a", bytes(length, seed: 1), in: store)
        let located = try #require(
            try store.perform { index throws(StoreError) in
                try index.connection.first("SELECT id, digest, length, checksum, place FROM variants") { row in
                    row.digestKey(1).map {
                        DiskStore.Located(row: row.integer(0), digest: $0, cost: 0, body: .init(row, at: 2))
                    }
                }
            } ?? nil)
        // Another's may have been there when it was read: v1, v2 and v1 again.
        for removes in [false, true] {
            #expect(try !store.confirmDamage(located, tier: .variants, removes: removes))
        }
        #expect(try get("a", from: store)?.count == length)
        let path = located.body.place == nil ? store.files.path(located.digest.text) : "\(folder.path)/bodies.pack"
        let file = String(path.dropFirst(folder.path.count + 1))
        folder.overwrite(file, at: 0, with: [UInt8](repeating: 0, count: try #require(folder.size(file))))
        #expect(try store.confirmDamage(located, tier: .variants, removes: false))
        #expect(try store.statistics().variants.entries == 1)
        #expect(try store.confirmDamage(located, tier: .variants, removes: true))
        #expect(try !store.confirmDamage(located, tier: .variants, removes: true))
        let counters = try store.statistics().variants
        #expect(counters.entries == 0 && counters.corrupt == 1)
    }

    @Test func `a snapshot in which nobody looks any more ends by itself`() throws {
        let (reader, writer) = (try store(lifetime: 1_000_000), try store())
        for round in 0..<3 {
            try put("a", [UInt8(round)], in: writer)
            #expect(try get("a", from: reader) != nil)
            try put("b", [UInt8(round)], in: writer)
            // As long as it reads what was before, the log cannot begin anew: that is waited for.
            let connection = try SQLiteConnection(path: "\(folder.path)/cache.sqlite", busyMilliseconds: 0)
            _ = try connection.first("SELECT count(*) FROM tiers") { _ in }
            #expect(connection.restartLog(waiting: 20_000))
            connection.close()
        }
        reader.close()
        #expect(throws: StoreError.self) { try get("a", from: reader) }
    }

    @Test func `a store closes while snapshots are held and watched`() throws {
        for lifetime in [1_000_000, 3_600_000_000_000] as [UInt64] {
            for closes in [false, true] {
                let reader = try store(lifetime: lifetime)
                try put("a", [1], in: reader)
                for _ in 0..<20 { #expect(try get("a", from: reader) == [1]) }
                if closes { reader.close() }
            }
        }
    }

    @Test func `the log begins anew beside who never stops reading it`() throws {
        let writer = try store()
        try put("a", [1], in: writer)
        let path = "\(folder.path)/cache.sqlite"
        let isOver = Atomic<Bool>(false)
        let failures = Atomic<Int>(0)
        @Sendable func read(_ connection: SQLiteConnection) throws(StoreError) {
            try connection.beginReading()
            _ = try connection.first("SELECT count(*) FROM variants") { $0.integer(0) }
        }
        let reading = try SQLiteConnection(path: path, busyMilliseconds: 60_000)
        try read(reading)
        let thread = OwnedThreads(count: 1)
        thread.submit {
            while !isOver.load(ordering: .relaxed) {
                let begun = Snapshot.now()
                while Snapshot.now() - begun < 50_000_000 { sched_yield() }
                // And begins anew at once.
                reading.endReading()
                do { try read(reading) } catch { failures.add(1, ordering: .relaxed) }
            }
            reading.close()
        }
        let connection = try SQLiteConnection(path: path, busyMilliseconds: 60_000)
        for round in 0..<10 {
            try put("\(round)", [1], in: writer)
            _ = try connection.first("SELECT count(*) FROM tiers") { _ in }
            #expect(connection.restartLog(waiting: 2_000))
        }
        isOver.store(true, ordering: .relaxed)
        thread.stop()
        #expect(failures.load(ordering: .relaxed) == 0)
        connection.close()
    }
}
