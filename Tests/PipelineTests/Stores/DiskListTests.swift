@testable import PipelineCaching
import Testing

@testable import Pipeline

@Suite struct DiskListTests {
    let folder = CacheFolder()

    /// Three originals with a variant each; sizes, costs and times in different orders.
    private func filled() throws -> DiskStore {
        let store = try DiskStore(folder: folder.path)
        for (number, (size, cost, created)) in [(500, 9.0, 30.0), (900, 1, 20), (700, 5, 10)].enumerated() {
            let body = bytes(size, seed: number)
            var original = record("http://\(number < 2 ? "a" : "b")/\(number)", body)
            original.fetchMilliseconds = 100 + cost
            try store.storeOriginal(original, body: body, generation: 1)
            let small = bytes(size / 10, seed: 10 + number)
            var entry = variant("\(number)", of: original.digest, small)
            entry.cost = cost
            entry.created = created
            entry.recipe = "thumbnail:\(number)0"
            try store.storeVariant(entry, body: small, generation: 1, source: original.source)
        }
        return store
    }

    private func names(_ store: DiskStore, _ change: (inout ListRequest) throws -> Void) throws -> [String] {
        var request = ListRequest()
        try change(&request)
        var names: [String] = []
        try store.list(request) { page in
            for entry in page {
                switch entry {
                case .original(let item): names.append("o" + String(item.record.source.suffix(1)))
                case .variant(let item): names.append("v" + String(item.entry.recipe.dropFirst(10).prefix(1)))
                }
            }
            return true
        }
        return names
    }

    @Test func `each order lists what a cleaner looks for first, and reversed the other way round`() throws {
        let store = try filled()
        for _ in 0..<3 {
            #expect(try store.variant(key: digest(Array("1".utf8)), of: digest(bytes(900, seed: 1))) != nil)
        }
        let orders: [(ListRequest.Order, [String])] = [
            (.stored, ["o0", "o1", "o2", "v0", "v1", "v2"]), (.size, ["o1", "o2", "o0", "v1", "v2", "v0"]),
            (.cost, ["o0", "o2", "o1", "v0", "v2", "v1"]), (.age, ["v2", "v1", "v0", "o0", "o1", "o2"]),
        ]
        for (order, expected) in orders {
            #expect(try names(store) { $0.order = order } == expected, "\(order)")
            let reversed = try names(store) {
                $0.order = order
                $0.isReversed = true
            }
            #expect(reversed == expected.reversed(), "\(order)")
        }
        #expect(try names(store) { $0.order = .hits }.first == "v1")
        #expect(try names(store) { $0.order = .lastUse }.last == "v1")
    }

    @Test func `what other processes use is listed as used`() throws {
        let store = try filled()
        let other = try DiskStore(folder: folder.path)
        for _ in 0..<4 {
            #expect(try other.variant(key: digest(Array("2".utf8)), of: digest(bytes(700, seed: 2))) != nil)
        }
        #expect(try other.records(source: "http://a/1").count == 1)
        other.close()
        #expect(try names(store) { $0.order = .hits } == ["v2", "o1", "o0", "v0", "v1", "o2"])
        #expect(try Set(names(store) { $0.order = .lastUse }.suffix(2)) == ["v2", "o1"])
        let found = try store.inspect(digest(Array("2".utf8)))
        #expect(found.variants.map(\.uses) == [5])
        #expect(try store.originals().map(\.uses) == [1, 2, 1])
    }

    @Test func `filters, and a limit`() throws {
        let store = try filled()
        #expect(try names(store) { $0.sources.pattern = "http://a/*" } == ["o0", "o1", "v0", "v1"])
        #expect(try names(store) { $0.sources.pattern = "*/[12]" } == ["o1", "o2", "v1", "v2"])
        #expect(try names(store) { $0.sources.selection = try SourceSelection(host: "b") } == ["o2", "v2"])
        #expect(try names(store) { $0.sources.selection = try SourceSelection(prefix: "http://a/1") } == ["o1", "v1"])
        let both = try names(store) {
            $0.sources.pattern = "*/1"
            $0.sources.selection = try SourceSelection(host: "a")
            $0.tiers = [.variants]
        }
        #expect(both == ["v1"])
        #expect(try names(store) { $0.recipe = "thumbnail:1*" } == ["v1"])
        #expect(try names(store) { $0.tiers = [.originals] } == ["o0", "o1", "o2"])
        #expect(try names(store) { $0.tiers = [] }.isEmpty)
        let largest = try names(store) {
            $0.order = .size
            $0.limit = 2
        }
        #expect(largest == ["o1", "o2"])
        #expect(try names(store) { $0.limit = 0 }.isEmpty)
    }

    @Test func `pages are small, end when asked, and leave out what went`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(10, seed: 1)
        for number in 0..<600 {
            try store.storeVariant(variant("\(number)", of: digest([]), body), body: body, generation: 1)
        }
        var pages: [Int] = []
        try store.list(ListRequest()) { page in
            pages.append(page.count)
            if pages.count == 1 { #expect((try? store.clear().variants) == 600) }
            return true
        }
        #expect(pages == [256, 0, 0])
        pages = []
        for number in 0..<300 {
            try store.storeVariant(
                variant("\(number)", of: digest([]), body), body: body, generation: store.generationNow())
        }
        try store.list(ListRequest()) { page in
            pages.append(page.count)
            return false
        }
        #expect(pages == [256])
    }

    @Test func `hits count what they spared, and damage takes it back`() throws {
        let store = try filled()
        let key = digest(Array("0".utf8))
        let original = digest(bytes(500, seed: 0))
        for _ in 0..<2 { #expect(try store.variant(key: key, of: original) != nil) }
        #expect(try store.originalBody(digest: original) != nil)
        store.noteStale()
        for _ in 0..<2 {
            let counters = try store.statistics()
            #expect(counters.variants.bytesSaved == 100 && counters.variants.millisecondsSaved == 18)
            #expect(counters.originals.bytesSaved == 500 && counters.originals.millisecondsSaved == 109)
            #expect(counters.records.stale == 1 && counters.variants.stale == 0)
            try store.flush()
        }
        try folder.sql("UPDATE bodies SET data = zeroblob(length)")
        #expect(try store.variant(key: key, of: original) == nil)
        let counters = try store.statistics().variants
        #expect(counters.bytesSaved == 100 && counters.millisecondsSaved == 18 && counters.hits == 2)
    }

    @Test func `a variant is inspected with the records of its original`() throws {
        let store = try filled()
        let found = try store.inspect(String(digest(Array("2".utf8)).prefix(10)))
        #expect(found.variants.count == 1 && found.originals.map(\.record.source) == ["http://b/2"])
        #expect(found.originals.first?.stored ?? 0 > 1_700_000_000)
    }
}

extension DiskStore {
    /// Records in the order they were stored.
    func originals() throws(StoreError) -> [ListedOriginal] {
        try everything().compactMap { if case .original(let original) = $0 { original } else { nil } }
    }

    /// Variants in the order they were stored.
    func variants() throws(StoreError) -> [ListedVariant] {
        try everything().compactMap { if case .variant(let variant) = $0 { variant } else { nil } }
    }

    private func everything() throws(StoreError) -> [ListedEntry] {
        var all: [ListedEntry] = []
        try list(ListRequest()) { page in
            all += page
            return true
        }
        return all
    }
}
