@testable import PipelineCaching
import Testing

@testable import Pipeline

@Suite struct DiskPurgeTests {
    let folder = CacheFolder()

    /// Stores an original with one variant of it.
    private func put(_ source: String, seed: Int, in store: DiskStore, generation: UInt64? = nil) throws {
        let body = bytes(90, seed: seed)
        let generation = try generation ?? store.generationNow()
        try store.storeOriginal(record(source, body), body: body, generation: generation)
        let small = bytes(40, seed: seed + 100_000)
        try store.storeVariant(
            variant("\(seed)", of: digest(body), small), body: small, generation: generation, source: source)
    }

    private func sources(_ store: DiskStore) throws -> Set<String> {
        try Set(store.originals().map(\.record.source))
    }

    @Test func `equal bytes are stored once and stay until the last source that has them is purged`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(100_000, seed: 1)
        for source in ["http://a/", "http://b/"] {
            try store.storeOriginal(record(source, body), body: body, generation: 1)
        }
        let same = variant("v", of: digest(body), body)
        try store.storeVariant(same, body: body, generation: 1, source: "http://a/")
        func holders() throws -> [Int] {
            try store.perform { index throws(StoreError) in
                try index.connection.rows("SELECT size FROM originals UNION ALL SELECT size FROM variants") {
                    $0.integer(0)
                }
            }
        }
        #expect(try holders() == [100_000, 100_000])
        let first = try store.purge(source: "http://a/")
        #expect(first.records == 1 && first.variants == 1 && first.originals == 0 && first.sources == 1)
        #expect(try holders() == [100_000])
        #expect(try store.records(source: "http://b/").count == 1)
        #expect(try store.originalBody(digest: digest(body)) == body)
        #expect(try store.verify().isClean)
        let second = try store.purge(source: "http://b/")
        #expect(second.records == 1 && second.originals == 1)
        #expect(try holders().isEmpty && !store.files.holds(digest(body), length: body.count))
        #expect(try store.purge(source: "http://b/").sources == 0)
        #expect(try store.verify().isClean)
    }

    @Test func `a prefix is text: percent and underscore stand for themselves`() throws {
        let store = try DiskStore(folder: folder.path)
        let all = [
            "http://a/i_g/1", "http://a/i_g/2?q", "http://a/img/1", "http://a/i%25g/1", "http://a/i_h", "http://b/i_g/",
            "id:i_g", "http://a/i_g",
        ]
        for (number, source) in all.enumerated() { try put(source, seed: number, in: store) }
        let result = try store.purge(SourceSelection(prefixes: ["http://a/i_g/"]))
        #expect(result.sources == 2 && result.records == 2 && result.originals == 2 && result.variants == 2)
        #expect(try sources(store) == Set(all.dropFirst(2)))
        #expect(try store.purge(SourceSelection(prefixes: ["http://a/i%"])).sources == 1)
        #expect(try store.purge(SourceSelection(prefixes: ["", "*", "http://a/i_g/"])).sources == 0)
        #expect(try store.statistics().variants.entries == 5)
        #expect(try store.verify().isClean)
    }

    @Test func `the names of a selection are those of its ranges`() throws {
        let store = try DiskStore(folder: folder.path)
        let names = ["id:ä", "id:äb", "id:\u{10FFFF}", "id:\u{10FFFF}x", "id:a", "id:~", "id:é", "id:e\u{301}"]
        for (number, name) in names.enumerated() { try put(name, seed: number, in: store) }
        for prefix in ["id:ä", "id:\u{10FFFF}", "id:e", "id:é", "id:e\u{301}"] {
            let selection = SourceSelection(prefixes: [prefix])
            var request = ListRequest()
            request.sources.selection = selection
            request.tiers = [.originals]
            var found: [String] = []
            try store.list(request) { page in
                for case .original(let item) in page { found.append(item.record.source) }
                return true
            }
            // Bytes are compared, not letters: both spellings of é are equal as Swift compares them.
            #expect(found.map { Array($0.utf8) } == names.filter { selection.contains($0) }.map { Array($0.utf8) })
            #expect(!found.isEmpty)
        }
    }

    @Test func `a host is that host alone, with any scheme and port`() throws {
        let store = try DiskStore(folder: folder.path)
        let gone = ["http://a.example/1", "https://a.example/2", "http://a.example:8080/3", "https://a.example:444/"]
        let kept = [
            "http://a.example.org/", "http://b.a.example/", "http://a.exampl/", "http://b/?http://a.example/",
            "id:http://a.example/", "http://a.example0/",
        ]
        for (number, source) in (gone + kept).enumerated() { try put(source, seed: number, in: store) }
        #expect(try store.purge(SourceSelection(host: "A.Example")).sources == 4)
        #expect(try sources(store) == Set(kept))
        try put("http://[::1]:81/x", seed: 30, in: store)
        for name in ["::1", "[::1]", "[0:0::1]"] {
            #expect(try SourceSelection(host: name) == SourceSelection(normalizedHost: "::1"))
        }
        #expect(try store.purge(SourceSelection(host: "::1")).sources == 1)
    }

    @Test(arguments: ["", "a.example/", "a.example:8080", "a b", "u@a.example", "http://a.example", "a?b", "a#b"])
    func `what is more or less than a host is refused`(text: String) {
        let error = #expect(throws: PipelineError.self) { try SourceSelection(host: text) }
        #expect(error?.code == .invalidSource)
    }

    @Test func `a prefix is normalised as a source is`() throws {
        #expect(try SourceSelection(prefix: "HTTP://A.Example:80") == SourceSelection(prefixes: ["http://a.example/"]))
        #expect(
            try SourceSelection(prefix: "https://a.example/x/../img%2d")
                == SourceSelection(prefixes: ["https://a.example/img-"]))
        #expect(try SourceSelection(prefix: "id:x") == SourceSelection(prefixes: ["id:x"]))
        #expect(try SourceSelection(prefix: "/a/./b/") == SourceSelection(prefixes: ["file:/a/b/"]))
        #expect(try SourceSelection(prefix: "/a/b") == SourceSelection(prefixes: ["file:/a/b"]))
        for text in ["", "ftp://a/", "http://", "http://a/img/..", "http://a/img/.?q", "/a/."] {
            #expect(throws: PipelineError.self, "\(text)") { try SourceSelection(prefix: text) }
        }
    }

    @Test func `work begun before a purge of many stores nothing after it`() throws {
        let store = try DiskStore(folder: folder.path)
        let before = try store.generationNow()
        try put("http://a/1", seed: 1, in: store)
        let result = try store.purge(SourceSelection(prefixes: ["http://a/"]))
        #expect(try result.mark.rawValue > before && result.mark.rawValue == store.generationNow())
        try put("http://a/2", seed: 2, in: store, generation: before)
        #expect(try sources(store).isEmpty)
        try put("http://a/2", seed: 2, in: store)
        #expect(try sources(store) == ["http://a/2"])
    }

    @Test func `a purge looks at what it removes and at nothing else`() throws {
        let store = try DiskStore(folder: folder.path)
        for number in 0..<300 { try put("http://other/\(number)", seed: number, in: store) }
        for number in 300..<400 { try put("http://a/\(number)", seed: number, in: store) }
        // Simulates other recent purges.
        try folder.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
            INSERT INTO purges SELECT 'p' || i, 1, unixepoch() FROM n
            """)
        func scanned(_ purge: () throws -> PurgeResult) throws -> (result: PurgeResult, rows: Int) {
            func rows() throws -> Int {
                try store.perform { index throws(StoreError) in try index.connection.rowsScanned }
            }
            let before = try rows()
            let result = try purge()
            return (result, try rows() - before)
        }
        // The tables of tiers and of the state have a handful of rows each.
        let one = try scanned { try store.purge(source: "http://a/300") }
        #expect(one.result.variants == 1 && one.rows < 100, "\(one.rows) rows")
        let prefix = try scanned { try store.purge(SourceSelection(prefixes: ["http://a/31"])) }
        #expect(prefix.result.variants == 10 && prefix.rows < 100, "\(prefix.rows) rows")
        let host = try scanned { try store.purge(SourceSelection(normalizedHost: "a")) }
        #expect(host.result.variants == 89 && host.rows < 250, "\(host.rows) rows")
        #expect(try store.statistics().variants.entries == 300)
        #expect(try store.verify().isClean)
    }

    @Test func `removing everything says what there was`() throws {
        let store = try DiskStore(folder: folder.path)
        for number in 0..<3 { try put("http://a/\(number)", seed: number, in: store) }
        let result = try store.clear()
        #expect(result.records == 3 && result.originals == 3 && result.variants == 3 && result.bytes > 0)
        #expect(try store.statistics().records.entries == 0)
        #expect(try store.verify().isClean)
    }
}
