import Glibc
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

    @Test func `hits write nothing to the index, and are listed with uses and the last use`() throws {
        let store = try store(10 * size)
        #expect(try put("a", cost: 10, in: store))
        func row() throws -> [Double] {
            try store.perform { index throws(StoreError) in
                try index.connection.first("SELECT uses, touched, total_changes() FROM variants") {
                    [$0.real(0), $0.real(1), $0.real(2)]
                } ?? []
            }
        }
        func listed() throws -> ListedVariant { try #require(try store.variants().first) }
        let before = try row()
        let stored = try listed()
        for _ in 0..<200 { #expect(try store.variant(key: digest(Array("a".utf8))) != nil) }
        #expect(try row() == before)
        let noted = try listed()
        #expect(noted.uses == 201 && noted.lastUsed > stored.lastUsed)
        try store.flush()
        #expect(try row()[..<2] == before[..<2] && listed() == noted)
        for _ in 0..<200 { #expect(try store.variant(key: digest(Array("a".utf8))) != nil) }
        #expect(try listed().uses == 255 && listed().lastUsed > noted.lastUsed)
        try store.flush()
        #expect(try listed().uses == 255)
    }

    @Test func `many uses are written in steps, and none is lost or written twice`() throws {
        var configuration = DiskStoreConfiguration()
        configuration.touchBatch = 700
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        let keys = (0..<900).map { digest(Array("\($0)".utf8)) }
        // So many that the table is large enough for none of those used to be lost.
        for number in 0..<1_100 { #expect(try put("\(number)", cost: 1, in: store)) }
        func written() throws -> Int {
            let file = UsesFile(path: "\(folder.path)/uses")
            return try store.variants(limit: 1_100).reduce(0) {
                $0 + Int(file.use(of: UsesFile.Key(.variants, $1.position), now: DiskIndex.now())?.uses ?? 0)
            }
        }
        for key in keys.prefix(699) { _ = try store.variant(key: key) }
        #expect(try written() == 0)
        _ = try store.variant(key: keys[699])
        #expect(try written() == 512)
        // One of those that wait, and one that was written.
        for key in [keys[699], keys[0]] { _ = try store.variant(key: key) }
        for key in keys.suffix(200) { _ = try store.variant(key: key) }
        #expect(try store.variants(limit: 1_100).reduce(0) { $0 + $1.uses } == 1_100 + 902)
        try store.flush()
        #expect(try written() == 902)
        #expect(try store.variants(limit: 1_100).reduce(0) { $0 + $1.uses } == 1_100 + 902)
        #expect(try store.statistics().variants.hits == 902)
    }

    @Test func `an entry that another process uses stays, and each use counts once`() throws {
        let store = try store(3 * size)
        for (name, cost) in [("a", 20.0), ("b", 30), ("c", 200)] { #expect(try put(name, cost: cost, in: store)) }
        let other = try self.store(3 * size)
        func get(_ name: String, from store: DiskStore) throws {
            #expect(try store.variant(key: digest(Array(name.utf8))) != nil)
        }
        func uses(_ name: String, in store: DiskStore) throws -> Int? {
            try store.variants().first { $0.entry.key == digest(Array(name.utf8)) }?.uses
        }
        func noted() throws -> Int {
            let file = UsesFile(path: "\(folder.path)/uses")
            return try store.variants().count {
                file.use(of: UsesFile.Key(.variants, $0.position), now: DiskIndex.now()) != nil
            }
        }
        for _ in 0..<2 { try get("a", from: other) }
        #expect(try uses("a", in: store) == 1)
        try other.flush()
        try get("a", from: store)
        #expect(try uses("a", in: store) == 4 && noted() == 1)
        // It was to be the first to go: its uses become part of its row, and go from the file.
        #expect(try put("d", cost: 100, in: store))
        #expect(try names(store, of: ["a", "b", "c", "d"]) == ["a", "c", "d"])
        for store in [store, other] { #expect(try uses("a", in: store) == 4 && noted() == 0) }
        try get("a", from: other)
        try other.flush()
        #expect(try uses("a", in: store) == 5 && noted() == 1)
        // What takes its place has them too, once.
        #expect(try put("a", cost: 20, in: store))
        #expect(try uses("a", in: store) == 5 && noted() == 0)
        #expect(try store.verify().isClean)
    }

    @Test func `what another process notes after an eviction counts in the next one`() throws {
        let store = try store(2 * size)
        for (name, cost) in [("a", 20.0), ("b", 30), ("c", 200)] { #expect(try put(name, cost: cost, in: store)) }
        #expect(try names(store, of: ["a", "b", "c"]) == ["b", "c"])
        // Until now there was no table: the first one asked for it in vain.
        let other = try self.store(2 * size)
        for _ in 0..<3 { #expect(try other.variant(key: digest(Array("b".utf8))) != nil) }
        try other.flush()
        #expect(try put("d", cost: 400, in: store))
        #expect(try names(store, of: ["a", "b", "c", "d"]) == ["b", "d"])
    }

    @Test func `uses that cannot be written now count from memory, and are written later`() throws {
        let store = try store(10 * size)
        let other = try self.store(10 * size)
        #expect(try put("a", cost: 10, in: store))
        func use(_ count: Int) throws {
            for _ in 0..<count { #expect(try store.variant(key: digest(Array("a".utf8))) != nil) }
            try store.flush()
        }
        try use(1)
        let lock = open("\(folder.path)/uses", O_RDWR | O_CLOEXEC)
        defer { close(lock) }
        #expect(flock(lock, LOCK_EX) == 0)
        try use(2)
        #expect(try store.variants().map(\.uses) == [4] && other.variants().map(\.uses) == [2])
        #expect(flock(lock, LOCK_UN) == 0)
        try use(1)
        #expect(try store.variants().map(\.uses) == [5] && other.variants().map(\.uses) == [5])
    }

    @Test func `uses that are undone with their transaction count later`() throws {
        let store = try store(3 * size)
        for (name, cost) in [("a", 20.0), ("b", 30), ("c", 200)] { #expect(try put(name, cost: cost, in: store)) }
        #expect(try store.variant(key: digest(Array("a".utf8))) != nil)
        try store.flush()
        #expect(try store.variant(key: digest(Array("a".utf8))) != nil)
        #expect(throws: StoreError.self) {
            try store.together { () throws(StoreError) in
                var entry = variant("d", of: digest([]), body)
                entry.cost = 100
                try store.storeVariant(entry, body: body, generation: 1)
                throw StoreError(.io, "some trouble")
            }
        }
        #expect(try store.variants().map(\.uses).max() == 3)
        #expect(try put("d", cost: 100, in: store))
        #expect(try names(store, of: ["a", "b", "c", "d"]) == ["a", "c", "d"])
        #expect(try store.variants().map(\.uses).max() == 3)
    }

    @Test func `nothing that a file of uses says keeps the store from its work`() throws {
        let store = try store(20 * size)
        for number in 0..<20 { #expect(try put("\(number)", cost: Double(10 + number), in: store)) }
        for number in 0..<20 { #expect(try store.variant(key: digest(Array("\(number)".utf8))) != nil) }
        try store.flush()
        for round in 0..<40 {
            var numbers = Numbers(state: UInt64(round))
            // Words of entries that are there, with all the rest changed.
            let file = try #require(folder.contents("uses"))
            for at in stride(from: 0, to: file.count, by: 16) where file[at..<at + 16].contains(where: { $0 != 0 }) {
                let garbage = (0..<12).map { _ in UInt8(truncatingIfNeeded: numbers.next()) }
                folder.overwrite("uses", at: at, with: Array(garbage[..<4]))
                folder.overwrite("uses", at: at + 8, with: Array(garbage[4...].prefix(round % 2 == 0 ? 8 : 5)))
            }
            _ = try put("new \(round)", cost: 5 + Double(round), in: store)
            for item in try store.variants() {
                #expect((1...255).contains(item.uses) && item.lastUsed <= DiskIndex.now() + 1)
            }
            var request = TrimRequest()
            request.unusedSince = 1
            #expect(try store.trim(request) == TrimResult())
            for number in 0..<20 { _ = try store.variant(key: digest(Array("\(number)".utf8))) }
            try store.flush()
        }
        #expect(try store.statistics().variants.entries == 20)
        #expect(try store.verify().isClean)
        try store.clear()
        #expect(folder.size("uses") == 0)
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
}
