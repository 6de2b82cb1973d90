import Testing

@testable import Pipeline

@Suite struct DiskEvictionTests {
    let folder = CacheFolder()
    private let body = bytes(2_000, seed: 1)
    /// Bytes that one variant with this body is charged.
    private var size: Int { DiskTier.charge(body: body.count) }

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

    @Test func `what costs most to make again stays, and a newcomer worth least is passed by`() throws {
        let store = try store(3 * size)
        for (name, cost) in [("a", 20.0), ("b", 30), ("c", 200)] { #expect(try put(name, cost: cost, in: store)) }
        #expect(try !put("d", cost: 10, in: store))
        #expect(try names(store, of: ["a", "b", "c", "d"]) == ["a", "b", "c"])
        // Used once more, the cheapest outweighs the next one, though nothing of that is written yet.
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
                let state = try index.sums().variants
                return [state.ghostFloor, state.ghosts]
            }
        }
        #expect(try remembered() == [0, 2])
        try again.clear()
        #expect(try remembered() == [2, 2])
    }

    @Test func `hits write nothing, and merge into uses and the last use`() throws {
        let store = try store(10 * size)
        #expect(try put("a", cost: 10, in: store))
        func row() throws -> (uses: Int, changes: Int) {
            try store.perform { index throws(StoreError) in
                let uses = try index.connection.first("SELECT uses FROM variants") { $0.integer(0) }
                let changes = try index.connection.first("SELECT total_changes()") { $0.integer(0) }
                return (uses ?? 0, changes ?? 0)
            }
        }
        let before = try row()
        for _ in 0..<200 { #expect(try store.variant(key: digest(Array("a".utf8))) != nil) }
        #expect(try row() == before)
        try store.flush()
        #expect(try row().uses == 201)
        for _ in 0..<200 { #expect(try store.variant(key: digest(Array("a".utf8))) != nil) }
        try store.flush()
        #expect(try row().uses == 255)
    }

    @Test func `many uses are written in steps, and none is lost or written twice`() throws {
        var configuration = DiskStoreConfiguration()
        configuration.touchBatch = 700
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        let keys = (0..<900).map { digest(Array("\($0)".utf8)) }
        for number in 0..<900 { #expect(try put("\(number)", cost: 1, in: store)) }
        func written() throws -> Int {
            try store.perform { index throws(StoreError) in
                try index.connection.first("SELECT sum(uses) FROM variants") { $0.integer(0) } ?? 0
            }
        }
        for key in keys.prefix(699) { _ = try store.variant(key: key) }
        #expect(try written() == 900)
        _ = try store.variant(key: keys[699])
        #expect(try written() == 900 + 512)
        // One of those that wait, and one that was written.
        for key in [keys[699], keys[0]] { _ = try store.variant(key: key) }
        for key in keys.suffix(200) { _ = try store.variant(key: key) }
        // A transaction takes the rest along, the latest uses included where their row was due.
        #expect(try put("new", cost: 1, in: store))
        #expect(try written() == 901 + 700 + 1)
        try store.flush()
        #expect(try written() == 901 + 902)
        #expect(try store.statistics().variants.hits == 902)
    }

    @Test func `the disk keeps what memory would keep`() throws {
        let budget = 40_000
        let store = try store(budget)
        var index = CacheIndex<MemoryKey>(budget: budget, policy: GreedyDualSizeFrequency())
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
            let isInMemory = index.use(MemoryKey(object.name)) != nil
            let found = try store.variant(key: entry.key, of: entry.originalDigest)
            #expect((found != nil) == isInMemory, "round \(round)")
            if found == nil {
                let size = DiskTier.charge(body: object.body.count)
                let stays = index.insert(
                    MemoryKey(object.name), CacheNode(), size: size, cost: object.cost)
                #expect(try store.storeVariant(entry, body: object.body, generation: 1) == stays, "round \(round)")
            }
            if round % 100 == 0 { try store.flush() }
        }
        let counters = try store.statistics().variants
        #expect(counters.bytes == index.bytes && counters.evictions == index.evictions && index.evictions > 100)
        #expect(try store.verify().isClean)
    }

    @Test func `an index of the second version is queued anew`() throws {
        var older = try OlderIndex(folder)
        for (name, cost) in [("a", 30.0), ("b", 10), ("c", 20)] {
            var entry = variant(name, of: digest([]), body)
            entry.cost = cost
            try older.add(entry, body)
        }
        try older.lower(to: 2)
        try folder.sql("UPDATE variants SET since = 1.7e9 + id, priority = 1.7e9 + id")
        let after = try store(3 * size)
        #expect(try put("d", cost: 40, in: after))
        #expect(try names(after, of: ["a", "b", "c", "d"]) == ["a", "c", "d"])
    }
}
