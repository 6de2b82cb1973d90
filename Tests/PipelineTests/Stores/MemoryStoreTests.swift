@testable import PipelineCaching
import CChecksum
import Testing

@testable import Pipeline

@Suite struct MemoryStoreTests {
    private func body(_ count: Int, _ byte: UInt8 = 1) -> [UInt8] { [UInt8](repeating: byte, count: count) }

    @Test func `an entry is found under its key with its body`() {
        let store = MemoryStore<String>(budget: 100_000)
        #expect(store.insert("value", body: [1, 2, 3], for: "key"))
        let found = store.entry(for: "key")
        #expect(found?.value == "value")
        #expect(found?.body == [1, 2, 3])
        #expect(store.entry(for: "other") == nil)
        let counters = store.counters
        #expect(counters.hits == 1 && counters.misses == 1 && counters.insertions == 1)
        #expect(counters.entries == 1 && counters.bytes == 3 + 3 + MemoryStore<String>.entryOverhead)
    }

    @Test func `the same key replaces what was there`() {
        let store = MemoryStore<Int>(budget: 100_000)
        store.insert(1, body: body(500), for: "key")
        store.insert(2, body: body(5), for: "key")
        #expect(store.entry(for: "key")?.value == 2)
        #expect(store.counters.entries == 1)
        #expect(store.counters.bytes == 5 + 3 + MemoryStore<Int>.entryOverhead)
    }

    @Test(arguments: [1, 4]) func `bytes never exceed the budget`(shards: Int) {
        let store = MemoryStore<Int>(budget: 50_000, shards: shards)
        var generator = SystemRandomNumberGenerator()
        for round in 0..<2_000 {
            store.insert(round, body: body(Int.random(in: 0...4_000, using: &generator)), for: "\(round % 300)")
            #expect(store.counters.bytes <= 50_000)
        }
        #expect(store.counters.evictions > 0)
        #expect(store.counters.entries > 0)
    }

    @Test func `what costs most to make again for its bytes stays, and a newcomer worth least is passed by`() {
        let size = 1_000 + 1 + MemoryStore<Int>.entryOverhead
        let store = MemoryStore<Int>(budget: 3 * size)
        #expect(store.insert(1, body: body(1_000), for: "a", cost: 20))
        #expect(store.insert(2, body: body(1_000), for: "b", cost: 30))
        #expect(store.insert(3, body: body(1_000), for: "c", cost: 200))
        #expect(!store.insert(4, body: body(1_000), for: "d", cost: 10))
        #expect(store.peek("d") == nil && store.counters.entries == 3 && store.counters.evictions == 1)
        #expect(store.counters.insertions == 4 && store.counters.refused == 0)
        // Used once more, the cheapest outweighs the next one.
        _ = store.entry(for: "a")
        #expect(store.insert(5, body: body(1_000), for: "e", cost: 100))
        #expect(store.peek("b") == nil && store.peek("a") != nil && store.peek("c") != nil)
        #expect(store.counters.bytes == 3 * size && store.counters.evictions == 2)
    }

    @Test func `a body larger than the budget is refused and evicts nothing`() {
        let store = MemoryStore<Int>(budget: 10_000)
        store.insert(1, body: body(100), for: "small")
        #expect(!store.insert(2, body: body(20_000), for: "large"))
        #expect(store.peek("small") != nil)
        #expect(store.counters.refused == 1 && store.counters.evictions == 0)
        #expect(!MemoryStore<Int>(budget: 0).insert(1, body: [], for: "key"))
    }

    @Test func `an insertion begun before a removal is void`() {
        let store = MemoryStore<Int>(budget: 100_000)
        let generation = store.generation
        store.remove { $0 == 7 }
        #expect(!store.insert(7, body: [1], for: "key", generation: generation))
        #expect(store.peek("key") == nil)
        #expect(store.insert(7, body: [1], for: "key", generation: store.generation))
    }

    @Test func `removing keeps the order of the others`() {
        let store = MemoryStore<Int>(budget: 1_000_000)
        for number in 0..<200 { store.insert(number, body: body(10), for: "\(number)") }
        #expect(store.remove { $0 % 2 == 0 } == 100)
        #expect(store.remove("1"))
        #expect(!store.remove("1"))
        #expect(store.counters.entries == 99)
        #expect(store.update("3") { $0 = 33 })
        #expect(store.peek("3")?.value == 33)
        store.removeAll()
        #expect(store.counters.entries == 0 && store.counters.bytes == 0)
    }

    @Test func `threads may use one store at once`() async {
        let store = MemoryStore<Int>(budget: 200_000, shards: 2)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    for round in 0..<2_000 {
                        let key = "\((round * 7 + task) % 400)"
                        if let found = store.entry(for: key) {
                            if found.body.count != found.value { Issue.record("body of another entry") }
                        } else {
                            let count = round % 900
                            store.insert(count, body: [UInt8](repeating: 0, count: count), for: key)
                        }
                    }
                }
            }
        }
        #expect(store.counters.bytes <= 200_000)
    }

    @Test func `the shards share the budget, and keys are spread over all of them`() {
        let store = MemoryStore<Int>(budget: 1_000_000, shards: 8)
        for number in 0..<2_000 { store.insert(number, body: body(500), for: "\(number)") }
        #expect(store.counters.bytes > 900_000 && store.counters.bytes <= 1_000_000)
    }

    @Test func `threads that hold on to what they found see it whole while others evict`() async {
        let store = MemoryStore<Int>(budget: 40_000, shards: 1)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    var held: [MemoryEntry<Int>] = []
                    for round in 0..<3_000 {
                        let key = (round * 7 + task) % 90
                        if let found = store.entry(for: "\(key)") {
                            held.append(found)
                        } else {
                            store.insert(key, body: [UInt8](repeating: UInt8(key), count: 300 + key), for: "\(key)")
                        }
                        if held.count > task * 5 {
                            let entry = held.removeFirst()
                            if entry.body != [UInt8](repeating: UInt8(entry.value), count: 300 + entry.value) {
                                Issue.record("a body that is not its entry's")
                            }
                        }
                    }
                }
            }
        }
        #expect(store.counters.evictions > 100)
    }

    @Test func `the checksum is CRC-32C (RFC 3720 B.4)`() {
        #expect(CRC32C.checksum([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(CRC32C.checksum([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
        #expect(CRC32C.checksum(Array(0..<32)) == 0x46DD_794E)
        #expect(CRC32C.checksum(Array("123456789".utf8)) == 0xE306_9283)
        #expect(CRC32C.checksum([]) == 0)
        for count in [1, 7, 8, 9, 63, 1_000] {
            let bytes = bytes(count, seed: count)
            #expect(CRC32C.checksum(bytes) == ~crc32c_by_bits(.max, bytes, count))
        }
    }
}
