@testable import PipelineCaching
import Glibc
import PipelineSupport
import Testing

@testable import Pipeline

@Suite struct DiskTrimTests {
    let folder = CacheFolder()

    private func put(
        _ number: Int, in store: DiskStore, source: String = "http://a/", created: Double = 1_000, size: Int = 300,
        cost: Double = 5
    ) throws {
        let body = bytes(size, seed: number)
        try store.storeOriginal(record("\(source)\(number)", body), body: body, generation: 1)
        var entry = variant("\(number)", of: digest(body), body)
        entry.created = created
        entry.cost = cost
        try store.storeVariant(entry, body: body, generation: 1, source: "\(source)\(number)")
    }

    private func numbers(_ store: DiskStore, of range: Range<Int>) throws -> [Int] {
        try range.filter {
            try store.holdsVariant(key: digest(Array("\($0)".utf8)), of: digest(bytes(300, seed: $0)))
        }
    }

    @Test func `age, use and sources confine each other as said`() throws {
        let store = try DiskStore(folder: folder.path)
        for number in 0..<6 {
            try put(
                number, in: store, source: number < 3 ? "http://a/" : "http://b/", created: Double(number % 3) * 100)
        }
        var request = TrimRequest()
        request.tiers = [.variants]
        request.olderThan = .seconds(SystemClock.unix.seconds - 150)
        request.sources.pattern = "*b/*"
        #expect(try store.trim(request).variants == 2)
        #expect(try numbers(store, of: 0..<6) == [0, 1, 2, 5])
        request.sources.pattern = nil
        request.sources.selection = try SourceSelection(host: "a")
        request.unusedFor = .seconds(1_000_000)  // Everything has been used since.
        #expect(try store.trim(request).variants == 2)
        #expect(try numbers(store, of: 0..<6) == [2, 5])
        request = TrimRequest()
        #expect(try store.trim(request) == PurgeResult())
        request.sources.pattern = "http://b/?"
        let rest = try store.trim(request)
        #expect(rest.variants == 1 && rest.originals == 3)
        #expect(try store.statistics().records.entries == 6)
        #expect(try store.originals().filter(\.hasBody).count == 3)
        #expect(try store.verify().isClean)
    }

    @Test func `what any process has used since is not trimmed as unused`() throws {
        let store = try DiskStore(folder: folder.path)
        for number in 0..<4 { try put(number, in: store) }
        try store.perform { index throws(StoreError) in
            for table in ["variants", "originals"] {
                try index.connection.execute("UPDATE \(table) SET last_access = 1000 + (id & 1)")
            }
        }
        let other = try DiskStore(folder: folder.path)
        func use(_ number: Int, in store: DiskStore) throws {
            let original = digest(bytes(300, seed: number))
            #expect(try store.variant(key: digest(Array("\(number)".utf8)), of: original) != nil)
            #expect(try store.originalBody(digest: original) != nil)
        }
        try use(1, in: other)
        other.close()
        try use(2, in: store)
        var request = TrimRequest()
        request.unusedFor = .seconds(1_000_000)
        let result = try store.trim(request)
        #expect(result.variants == 2 && result.originals == 2)
        #expect(try numbers(store, of: 0..<4) == [1, 2])
        #expect(try store.verify().isClean)
    }

    @Test func `a number and a size leave what is worth most, in many transactions`() throws {
        let store = try DiskStore(folder: folder.path)
        for number in 0..<700 { try put(number, in: store, cost: Double(1 + number)) }
        var request = TrimRequest()
        request.tiers = [.variants]
        request.maxEntries = 40
        let result = try store.trim(request)
        #expect(result.variants == 660 && result.originals == 0)
        #expect(try numbers(store, of: 0..<700) == Array(660..<700))
        request = TrimRequest()
        request.maxBytes = 10 * DiskTable.charge(body: 300)
        let more = try store.trim(request)
        let counters = try store.statistics()
        #expect(counters.variants.entries == 10 && counters.originals.entries == 10)
        #expect(more.variants == 30 && more.originals == 690)
        #expect(counters.records.entries == 700)
        #expect(try store.verify().isClean)
    }

    @Test func `the index takes less of the disk when most entries go`() throws {
        let store = try DiskStore(folder: folder.path)
        for number in 0..<100 { try put(number, in: store, size: 30_000) }
        for number in 1_000..<3_000 { try put(number, in: store, size: 10) }
        func taken() throws -> Int {
            var info = stat()
            try #require(stat("\(folder.path)/cache.sqlite", &info) == 0)
            return Int(info.st_blocks) * 512
        }
        #expect(try store.perform { index throws(StoreError) in index.checkpoint(truncates: true) })
        let full = try taken()
        #expect(full > 4_000_000)
        var request = TrimRequest()
        request.maxEntries = 2
        #expect(try store.trim(request).variants == 2_098)
        #expect(try taken() < full / 2)
        _ = try store.clear()
        #expect(try taken() < 300_000)
        #expect(try store.verify().isClean)
    }

    @Test func `the folder takes little more than the budget, and little more than half after a trim to half`() throws {
        var configuration = DiskStoreConfiguration()
        configuration.variants = 30_000_000
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        var numbers = Numbers(state: 4)
        var stored = 0
        var number = 0
        while stored < 90_000_000 {
            number += 1
            try store.inOneTransaction { () throws(StoreError) in
                for part in 0..<16 {
                    let body = bytes(1_000 + Int(numbers.next() % 40_000), seed: number * 16 + part)
                    stored += body.count
                    var entry = variant("\(number) \(part)", of: digest([UInt8(part)]), body)
                    entry.cost = 1 + Double(number)
                    try store.storeVariant(entry, body: body, generation: 1)
                }
            }
        }
        func taken() -> Int {
            let files = BodyFiles.prefixes.flatMap { prefix in
                store.files.bodies(in: prefix).map { "bodies/\(prefix)/\($0)" }
            }
            return (files + ["cache.sqlite"]).reduce(0) { sum, file in
                var info = stat()
                return stat("\(folder.path)/\(file)", &info) == 0 ? sum + Int(info.st_blocks) * 512 : sum
            }
        }
        #expect(try store.perform { index throws(StoreError) in index.checkpoint(truncates: true) })
        let held = try store.statistics().variants.bytes
        #expect(held > 29_000_000 && taken() <= 37_500_000, "\(taken())")
        var request = TrimRequest()
        request.maxBytes = 15_000_000
        _ = try store.trim(request)
        #expect(taken() <= 19_500_000, "\(taken())")
    }

    @Test func `deletions give unused pages back as they go, and keep the WAL short`() throws {
        let store = try DiskStore(folder: folder.path)
        for number in 0..<256 {
            try store.inOneTransaction { () throws(StoreError) in
                for part in 0..<16 {
                    let body = bytes(12_000, seed: number * 16 + part)
                    try store.storeVariant(
                        variant("\(number) \(part)", of: digest([UInt8(part)]), body), body: body, generation: 1)
                }
            }
        }
        let before = try store.perform { index throws(StoreError) in try index.pages() }
        var maxUnused = 0
        while try store.deleting({ transaction, limit throws(StoreError) in
            try transaction.evict(.variants, entries: 100, bytes: .max, atMost: limit)
        }) > 0 {
            maxUnused = max(maxUnused, try store.perform { index throws(StoreError) in try index.pages().unused })
        }
        // A sixth of those there are, where a step of 512 entries leaves 1,536.
        #expect(before.all > 12_000 && maxUnused < 2_100, "\(before) \(maxUnused)")
        #expect(try #require(folder.size("cache.sqlite-wal")) < 40_000_000)
    }

    @Test func `a lowered budget gives space back`() throws {
        let full = try DiskStore(folder: folder.path)
        for number in 0..<100 { try put(number, in: full, size: 30_000, cost: Double(1 + number)) }
        full.close()
        let before = try #require(folder.size("cache.sqlite"))
        var configuration = DiskStoreConfiguration()
        configuration.variants = 1_500_000
        configuration.originals = 15_000
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        try put(900, in: store, cost: 0.001)
        let held = try store.statistics().variants.bytes
        #expect(held <= 1_500_000 && held > 1_440_000)
        #expect(try #require(folder.size("cache.sqlite")) < before * 2 / 3)
        #expect(try store.verify().isClean)
        store.close()
    }

    @Test func `what exceeds a lowered budget goes before the first newcomer`() throws {
        let large = try DiskStore(folder: folder.path)
        for number in 0..<400 { try put(number, in: large, cost: Double(1 + number)) }
        large.close()
        var configuration = DiskStoreConfiguration()
        configuration.variants = 20 * DiskTable.charge(body: 300)
        configuration.originals = configuration.variants
        configuration.records = 30_000
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        // With so little value that it evicts no other entry.
        try put(900, in: store, cost: 0.001)
        let counters = try store.statistics()
        #expect(counters.variants.bytes <= configuration.variants && counters.variants.entries == 20)
        #expect(try numbers(store, of: 0..<901) == Array(380..<400))
        #expect(counters.originals.bytes <= configuration.originals && counters.records.bytes <= 30_000)
        #expect(try store.verify().isClean)
    }
}
