@_spi(Benchmarks) @testable import PipelineCaching
import PipelineSupport
import Testing

@testable import Pipeline

@Suite struct CacheIndexTests {
    private func index(_ budget: Int) -> HeldIndex<String, Int> {
        HeldIndex(budget: budget)
    }

    @Test func `what is worth least per byte goes first, and the newcomer may be it`() {
        let index = index(300)
        #expect(index.insert("a", 1, size: 100, cost: 10))  // ½ × 0.1
        #expect(index.insert("b", 2, size: 100, cost: 40))  // ½ × 0.4
        #expect(index.insert("c", 3, size: 100, cost: 20))  // ½ × 0.2
        // 0.02 is below all of them: the newcomer is passed by, and the clock stands at 0.02.
        #expect(!index.insert("d", 4, size: 100, cost: 4))
        #expect(index.peek("d") == nil && index.count == 3 && index.evictions == 1)
        // 0.02 + 0.3 is not: a goes at 0.05.
        #expect(index.insert("e", 5, size: 100, cost: 60))
        #expect(index.peek("a") == nil && index.count == 3 && index.bytes == 300)
        // One use lifts c to 0.05 + 2 × 0.2 = 0.45, above b at 0.2: c moves back and b goes.
        #expect(index.use("c") == 3)
        #expect(index.insert("f", 6, size: 100, cost: 50))  // 0.05 + 0.25
        #expect(index.peek("b") == nil && index.peek("c") == 3)
        // a is remembered: it starts with two uses, at 0.2 + 2 × 0.1 = 0.4, and f goes at 0.3.
        #expect(index.insert("a", 7, size: 100, cost: 10))
        #expect(index.entry(of: "a") == EvictionEntry(size: 100, cost: 10, uses: 2, since: 0.2))
        #expect(index.peek("f") == nil && index.evictions == 4)
    }

    @Test func `an entry larger than the budget is refused and evicts nothing`() {
        let index = index(100)
        #expect(index.insert("a", 1, size: 60, cost: 1))
        #expect(!index.insert("b", 2, size: 101, cost: 1_000))
        #expect(index.count == 1 && index.evictions == 0)
        #expect(!index.insert("a", 3, size: 101, cost: 1_000))
        #expect(index.count == 0 && index.bytes == 0 && index.evictions == 0)
        #expect(index.insert("c", 4, size: 100, cost: 1))
    }

    @Test func `a value in place of another keeps its access count and is charged again`() {
        let index = index(200)
        #expect(index.insert("a", 1, size: 50, cost: 1))
        _ = index.use("a")
        #expect(index.insert("a", 2, size: 80, cost: 5))
        #expect(index.entry(of: "a") == EvictionEntry(size: 80, cost: 5, uses: 2, since: 0))
        #expect(index.bytes == 80 && index.count == 1 && index.peek("a") == 2)
        // Worth less than before: its place in the queue falls, too.
        #expect(index.insert("b", 3, size: 80, cost: 4))
        #expect(index.insert("a", 4, size: 80, cost: 0.5))
        #expect(index.insert("c", 5, size: 80, cost: 4))
        #expect(index.peek("a") == nil && index.peek("b") == 3)
    }

    @Test func `a smaller budget evicts down to it`() {
        let index = index(1_000)
        for number in 0..<10 {
            #expect(index.insert("\(number)", number, size: 100, cost: Double(number + 1)))
        }
        index.resize(to: 350)
        #expect(index.bytes == 300 && index.budget == 350)
        for number in 7..<10 as Range<Int> { #expect(index.peek(String(number)) == number) }
        index.resize(to: 0)
        #expect(index.count == 0 && index.bytes == 0)
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func `any sequence of calls leaves what the plain definition leaves`(seed: UInt64) {
        var numbers = Numbers(state: seed)
        let index = HeldIndex<UInt32, UInt32>(budget: 2_000)
        let model = PlainCache(budget: 2_000)
        for round in 0..<3_000 {
            let key = numbers.next() % (round % 1_000 < 500 ? 60 : 400)
            // Costs that never give two entries the same priority: which of them goes first is not defined.
            let cost = Double(numbers.next() % 1_000_000) / 1_009 + 1
            let size = Int(numbers.next() % (round % 7 == 0 ? 2_200 : 150)) + 1
            switch numbers.next() % 20 {
            case 0: #expect(index.remove(key) == model.remove(key))
            case 1:
                #expect(index.insert(key, UInt32(round), size: size, cost: cost) == model.insert(key, size, cost))
            case 2 where round % 50 == 0:
                let budget = 500 + Int(numbers.next() % 2_500)
                index.resize(to: budget)
                model.resize(to: budget)
            case 3 where round % 100 == 0:
                #expect(index.remove(where: { $0 % 3 == 0 }) == model.remove(where: { $0 % 3 == 0 }))
            default:
                let isThere = index.use(key) != nil
                #expect(isThere == model.use(key))
                if !isThere {
                    #expect(index.insert(key, UInt32(round), size: size, cost: cost) == model.insert(key, size, cost))
                }
            }
            #expect(index.bytes <= index.budget)
            #expect(index.bytes == model.bytes && index.count == model.entries.count)
        }
        for (key, entry) in model.entries { #expect(index.entry(of: key) == entry) }
        #expect(index.evictions == model.evictions && index.evictions > 300)
    }

    @Test(arguments: [UInt64(1), 2]) func `what is found by name is what has the name, whatever came and went`(
        seed: UInt64
    ) {
        var numbers = Numbers(state: seed)
        let index = HeldIndex<UInt32, UInt32>(budget: 20_000)
        var names: [UInt32: String] = [:]
        for round in 0..<4_000 as Range<UInt32> {
            let key = numbers.next() % 300
            // Many share a name, and some have none.
            let name = ["http://a/\(key % 40)", "http://a/\(key % 40)/\(key)", "", nil, "\u{FF}\(key % 3)"][
                Int(key % 5)]
            switch numbers.next() % 10 {
            case 0: _ = index.remove(key)
            case 1 where round % 5 == 0:
                let prefix = "http://a/\(key % 40)"
                let removed = index.remove(namedWhere: SourceSelection(prefixes: [prefix]).contains)
                #expect(Set(removed) == Set(names.filter { $0.value.hasPrefix(prefix) }.keys), "\(prefix)")
            case 2 where round % 5 == 0:
                let name = names[numbers.next() % 300] ?? ""
                #expect(Set(index.remove(named: name)) == Set(names.filter { $0.value == name }.keys))
            default: _ = index.insert(key, key, size: 100, cost: Double(numbers.next() % 100), name: name)
            }
            names[key] = name
            names = names.filter { index.peek($0.key) != nil }
        }
        #expect(index.evictions > 100 && names.count > 20)
    }

    @Test func `a replay counts the second request for a key as a hit`() {
        var replay = EvictionReplay(capacity: 100)
        let hits = [1, 2, 1, 3, 3, 2].map { replay.request($0, size: 50, cost: 1) }
        // The third comes at the worth of the second, the first has been used: one of the two newer ones went.
        #expect(hits[0...3] == [false, false, true, false] && replay.count == 2 && replay.bytes == 100)
        #expect(hits[4] != hits[5])
    }
}

/// An index with changes that are expected in place.
private final class HeldIndex<Key: Hashable & Sendable, Value: Sendable> {
    private var index: CacheIndex<Key, Value>

    init(budget: Int) { index = CacheIndex(budget: budget) }

    var count: Int { index.count }
    var bytes: Int { index.bytes }
    var budget: Int { index.budget }
    var evictions: Int { index.evictions }

    func use(_ key: Key) -> Value? { index.use(key) }
    func peek(_ key: Key) -> Value? { index.peek(key) }
    func entry(of key: Key) -> EvictionEntry? { index.entry(of: key) }
    func remove(_ key: Key) -> Bool { index.remove(key) }
    func remove(where matches: (Key) -> Bool) -> Int { index.remove { key, _ in matches(key) } }
    func remove(named name: String) -> [Value] { index.remove(named: EntryName(name)) }
    func remove(namedWhere matches: (String) -> Bool) -> [Value] { index.remove(namedWhere: matches) }
    func resize(to budget: Int) { index.resize(to: budget) }

    func insert(_ key: Key, _ value: Value, size: Int, cost: Double, name: String? = nil) -> Bool {
        index.insert(key, value, size: size, cost: cost, name: name.map(EntryName.init))
    }
}

/// The definition without a queue: looks at all entries to find the one that goes.
private final class PlainCache {
    var budget: Int
    var policy = GreedyDualSizeFrequency()
    var entries: [UInt32: EvictionEntry] = [:]
    var ghosts: [UInt32] = []
    var evictions = 0

    init(budget: Int) { self.budget = budget }

    var bytes: Int { entries.values.reduce(0) { $0 + $1.size } }

    func use(_ key: UInt32) -> Bool {
        guard var entry = entries[key] else { return false }
        policy.touch(&entry, uses: 1)
        entries[key] = entry
        return true
    }

    func insert(_ key: UInt32, _ size: Int, _ cost: Double) -> Bool {
        let before = entries[key]
        entries[key] = nil
        guard size <= budget else { return false }
        var entry = EvictionEntry(size: size, cost: cost)
        policy.admit(&entry, wasEvicted: ghosts.contains(key))
        if let before {
            entry.uses = max(entry.uses, before.uses)
        }
        entries[key] = entry
        evict()
        return entries[key] != nil
    }

    func remove(_ key: UInt32) -> Bool { entries.removeValue(forKey: key) != nil }

    func remove(where matches: (UInt32) -> Bool) -> Int {
        let before = entries.count
        entries = entries.filter { !matches($0.key) }
        return before - entries.count
    }

    func resize(to budget: Int) {
        self.budget = budget
        evict()
    }

    private func evict() {
        while bytes > budget {
            guard let least = entries.min(by: { policy.priority(of: $0.value) < policy.priority(of: $1.value) })
            else { return }
            policy.evicted(least.value)
            entries[least.key] = nil
            evictions += 1
            ghosts.append(least.key)
            ghosts.removeFirst(max(0, ghosts.count - entries.count))
        }
    }
}
