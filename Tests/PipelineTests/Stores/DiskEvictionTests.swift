@testable import PipelineCaching
import Glibc
import Testing

@testable import Pipeline

@Suite struct DiskEvictionTests {
    let folder = CacheFolder()
    private let body = bytes(2_000, seed: 1)
    /// Bytes that one variant with this body is charged.
    private var size: Int { DiskTable.charge(body: body.count) }

    private func store(_ budget: Int) throws -> DiskStore {
        var configuration = DiskStoreConfiguration()
        configuration.variants = budget
        return try DiskStore(folder: folder.path, configuration: configuration)
    }

    private func put(_ name: String, cost: Double, in store: DiskStore) throws -> Bool {
        var entry = variant(name, of: digest([]), body)
        entry.cost = cost
        return try store.storeVariant(entry, body: body, generation: 1)
    }

    private func names(_ store: DiskStore, of candidates: [String]) throws -> [String] {
        let keys = try Set(store.variants().map(\.entry.key))
        return candidates.filter { keys.contains(digest(Array($0.utf8))) }
    }

    @Test func `entries that are expensive to recreate stay, and a new entry of less value is not stored`() throws {
        let store = try store(3 * size)
        for (name, cost) in [("a", 20.0), ("b", 30), ("c", 200)] { #expect(try put(name, cost: cost, in: store)) }
        #expect(try !put("d", cost: 10, in: store))
        #expect(try names(store, of: ["a", "b", "c", "d"]) == ["a", "b", "c"])
        // After one more access the cheapest outweighs the next one, although the access is not written yet.
        #expect(try store.variant(key: digest(Array("a".utf8))) != nil)
        #expect(try put("e", cost: 100, in: store))
        #expect(try names(store, of: ["a", "b", "c", "d", "e"]) == ["a", "c", "e"])
        let counters = try store.statistics().variants
        #expect(counters.insertions == 5 && counters.evictions == 2 && counters.refused == 0)
        #expect(counters.entries == 3 && counters.bytes == 3 * size)
        #expect(try store.verify().isClean)
    }

    @Test func `clock and evicted keys outlive the process`() throws {
        var first: DiskStore? = try store(2 * size)
        for (name, cost) in [("a", 10.0), ("b", 20), ("c", 30)] {
            _ = try put(name, cost: cost, in: try #require(first))
        }
        first?.close()
        first = nil
        let again = try store(2 * size)
        // Twice its worth and the clock: above b, which is on probation.
        #expect(try put("a", cost: 10, in: again))
        #expect(try again.variants().first { $0.entry.key == digest(Array("a".utf8)) }?.uses == 2)
        #expect(try names(again, of: ["a", "b", "c"]) == ["a", "c"])
        func remembered() throws -> [Int] {
            try again.perform { index throws(StoreError) in
                try index.connection.rows("SELECT ghost_floor, ghost_serial FROM tiers WHERE name = 'variants'") {
                    [$0.integer(0), $0.integer(1)]
                }[0]
            }
        }
        #expect(try remembered() == [0, 2])
        try again.clear()
        #expect(try remembered() == [0, 0])
    }

    @Test func `hits write nothing to the index, and are listed with accesses and the last access`() throws {
        let store = try store(10 * size)
        #expect(try put("a", cost: 10, in: store))
        func row() throws -> [Double] {
            try store.perform { index throws(StoreError) in
                try index.connection.first("SELECT accesses, last_access, total_changes() FROM variants") {
                    [$0.real(0), $0.real(1), $0.real(2)]
                } ?? []
            }
        }
        func listed() throws -> ListedVariant { try #require(try store.variants().first) }
        let before = try row()
        for _ in 0..<200 { #expect(try store.variant(key: digest(Array("a".utf8))) != nil) }
        #expect(try row() == before)
        let noted = try listed()
        #expect(noted.uses == 201 && noted.lastUsed > before[1])
        for _ in 0..<200 { #expect(try store.variant(key: digest(Array("a".utf8))) != nil) }
        #expect(try listed().uses == 255 && listed().lastUsed > noted.lastUsed)
    }

    @Test func `many accesses are written in steps, and none is lost or written twice`() throws {
        var configuration = DiskStoreConfiguration()
        configuration.touchBatch = 700
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        let keys = (0..<900).map { digest(Array("\($0)".utf8)) }
        for number in 0..<900 { #expect(try put("\(number)", cost: 1, in: store)) }
        for key in keys + keys.prefix(300) { _ = try store.variant(key: key) }
        #expect(try store.variants().reduce(0) { $0 + $1.uses } == 900 + 1_200)
        try store.flush()
        #expect(try store.variants().reduce(0) { $0 + $1.uses } == 900 + 1_200)
        #expect(try store.statistics().variants.hits == 1_200)
    }

    @Test func `an entry that another process uses stays, and each access counts once`() throws {
        let store = try store(3 * size)
        for (name, cost) in [("a", 20.0), ("b", 30), ("c", 200)] { #expect(try put(name, cost: cost, in: store)) }
        let other = try self.store(3 * size)
        func get(_ name: String, from store: DiskStore) throws {
            #expect(try store.variant(key: digest(Array(name.utf8))) != nil)
        }
        func uses(_ name: String, in store: DiskStore) throws -> Int? {
            try store.variants().first { $0.entry.key == digest(Array(name.utf8)) }?.uses
        }
        for _ in 0..<2 { try get("a", from: other) }
        #expect(try uses("a", in: store) == 1)
        try other.flush()
        try get("a", from: store)
        // It was to be the first to go.
        #expect(try put("d", cost: 100, in: store))
        #expect(try names(store, of: ["a", "b", "c", "d"]) == ["a", "c", "d"])
        for store in [store, other] { #expect(try uses("a", in: store) == 4) }
        try get("a", from: other)
        try other.flush()
        // The replacement inherits its accesses.
        #expect(try put("a", cost: 20, in: store))
        #expect(try uses("a", in: store) == 5)
        #expect(try store.verify().isClean)
    }

    @Test func `ghost entries stay as many as entries, and old ones are deleted`() throws {
        let store = try store(100 * size)
        for number in 0..<3_000 { _ = try put("\(number)", cost: 10 + Double(number), in: store) }
        func count(_ condition: String) throws -> Int? {
            try store.perform { index throws(StoreError) in
                try index.connection.first("SELECT count(*) FROM ghosts WHERE \(condition)") { $0.integer(0) }
            }
        }
        let counting = "serial > (SELECT ghost_floor FROM tiers WHERE name = 'variants')"
        #expect(try count(counting) == 100 && (count("1") ?? 0) <= 300)
    }

    @Test func `sums that are wrong by damage do not keep newcomers out`() throws {
        let store = try store(3 * size)
        for name in ["a", "b"] { #expect(try put(name, cost: 10, in: store)) }
        try folder.sql("UPDATE tiers SET bytes = 1 << 40, entries = 1 << 30 WHERE name = 'variants'")
        #expect(try put("c", cost: 10, in: store))
        #expect(try names(store, of: ["a", "b", "c"]) == ["a", "b", "c"])
        #expect(try store.verify().isClean)
    }

    @Test func `the disk keeps what memory would keep`() throws {
        let budget = 40_000
        let store = try store(budget)
        var index = CacheIndex<String, Void>(budget: budget)
        var numbers = Numbers(state: 11)
        let objects = (0..<80).map { number in
            (
                name: "\(number)", body: bytes(100 + Int(numbers.next() % 6_000), seed: number),
                cost: 1 + Double(numbers.next() % 1_000_000) / 1_009
            )
        }
        for round in 0..<700 {
            // Some are asked for far more often than others.
            let bound = numbers.next() % 3 == 0 ? 80 : 12
            let object = objects[Int(numbers.next()) % bound]
            var entry = variant(object.name, of: digest([]), object.body)
            entry.cost = object.cost
            let isInMemory = index.use(object.name) != nil
            let found = try store.variant(key: entry.key, of: entry.originalDigest)
            #expect((found != nil) == isInMemory, "round \(round)")
            if found == nil {
                let size = DiskTable.charge(body: object.body.count)
                let stays = index.insert(
                    object.name, (), size: size, cost: object.cost)
                #expect(try store.storeVariant(entry, body: object.body, generation: 1) == stays, "round \(round)")
            }
            if round % 100 == 0 { try store.flush() }
        }
        let counters = try store.statistics().variants
        #expect(counters.bytes == index.bytes && counters.evictions == index.evictions && index.evictions > 100)
        #expect(try store.verify().isClean)
    }
}
