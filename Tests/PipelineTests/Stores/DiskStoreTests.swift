@testable import HTTPCaching
@testable import PipelineCaching
import Glibc
import PipelineSupport
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// The place of a cache folder, removed with the value.
final class CacheFolder: Sendable {
    private let folder = ScratchFolder()
    var path: String { folder("cache") }

    func write(_ bytes: [UInt8], to file: String) { folder.write(bytes, to: "cache/" + file) }

    func overwrite(_ file: String, at offset: Int, with bytes: [UInt8]) {
        let handle = open("\(path)/\(file)", O_WRONLY | O_CREAT, 0o600)
        _ = pwrite(handle, bytes, bytes.count, off_t(offset))
        close(handle)
    }

    /// The content of a file; nil if it does not exist.
    func contents(_ file: String) -> [UInt8]? { folder.bytes("cache/" + file) }

    /// Bytes of a file; nil if it does not exist.
    func size(_ file: String) -> Int? {
        var info = stat()
        return stat("\(path)/\(file)", &info) == 0 ? Int(info.st_size) : nil
    }

    /// Runs statements beside the store, as another program would.
    func sql(_ text: String) throws {
        let connection = try SQLiteConnection(path: "\(path)/cache.sqlite", busyMilliseconds: 2_000)
        try connection.execute(text)
        connection.close()
    }
}

func digest(_ bytes: [UInt8]) -> String { sha256Hex(bytes) }

func bytes(_ count: Int, seed: Int) -> [UInt8] {
    var state = UInt64(truncatingIfNeeded: seed) &* 0x9E37_79B9_7F4A_7C15 | 1
    return (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 33)
    }
}

func record(_ source: String, _ body: [UInt8], selecting: [String: String?] = [:]) -> OriginalRecord {
    OriginalRecord(
        source: source,
        response: StoredResponse(
            status: 200, fields: [HeaderField("ETag", "\"a\""), HeaderField("ETag", "b")], requestTime: 10.5,
            responseTime: 11.25, selecting: selecting),
        digest: digest(body), length: body.count,
        header: ImageHeader(format: .png, encodedWidth: 3, encodedHeight: 4, hasAlpha: true), fetchMilliseconds: 12.5)
}

func variant(_ name: String, of original: String, _ body: [UInt8]) -> VariantEntry {
    VariantEntry(
        key: digest(Array(name.utf8)), originalDigest: original, digest: digest(body), length: body.count,
        format: .webp, width: 30, height: 20, recipe: "thumbnail:30x20", cost: 4.5, created: 1_000)
}

extension DiskStore {
    /// A variant of an empty original.
    func variant(key: String) throws(StoreError) -> (entry: VariantEntry, body: [UInt8])? {
        try variant(key: key, of: digest([]))
    }
}

@Suite struct DiskStoreTests {
    let folder = CacheFolder()

    @Test(arguments: [0, 100, 32 * 1024, 32 * 1024 + 1, 300_000])
    func `what is stored is found again, also by another store`(count: Int) throws {
        let body = bytes(count, seed: 1)
        let original = record("http://a/", body, selecting: ["accept": "x", "cookie": nil])
        let small = variant("v", of: original.digest, body)
        do {
            let store = try DiskStore(folder: folder.path)
            let generation = try store.generationNow()
            #expect(try store.storeOriginal(original, body: body, generation: generation))
            #expect(try store.storeVariant(small, body: body, generation: generation))
            store.close()
        }
        let store = try DiskStore(folder: folder.path)
        #expect(try store.records(source: "http://a/") == [original])
        #expect(try store.originalBody(digest: original.digest) == body)
        let found = try store.variant(key: small.key, of: small.originalDigest)
        #expect(found?.entry == small && found?.body == body)
        #expect(try store.holdsVariant(key: small.key, of: small.originalDigest))
        #expect(try store.variant(key: digest([9])) == nil)
        let counters = try store.statistics()
        #expect(counters.variants.hits == 1 && counters.variants.misses == 1 && counters.originals.hits == 1)
        #expect(counters.originals.entries == 1 && counters.variants.entries == 1)
        #expect(try store.verify().isClean)
    }

    @Test func `a freshened record has new fields and the body it had`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(100_000, seed: 2)
        var original = record("http://a/", body)
        try store.storeOriginal(original, body: body, generation: 1)
        original.response.fields = [HeaderField("Age", "3")]
        original.response.responseTime = 99
        #expect(try store.freshen(original))
        #expect(try store.records(source: "http://a/") == [original])
        #expect(try store.originalBody(digest: original.digest) == body)
        #expect(try store.freshen(record("http://b/", body)) == false)
        #expect(try store.removeRecord(source: "http://a/", selection: .init()))
        #expect(try store.originalBody(digest: original.digest) == nil)
        #expect(try store.verify().isClean)
    }

    @Test func `deleting keeps both tiers within their budgets, and records outlive bodies`() throws {
        var configuration = DiskStoreConfiguration()
        configuration.originals = 400_000
        configuration.variants = 150_000
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        for number in 0..<60 {
            let body = bytes(number % 3 == 0 ? 90_000 : 9_000, seed: number)
            let original = record("http://a/\(number)", body)
            try store.storeOriginal(original, body: body, generation: 1)
            let small = bytes(5_000, seed: 1_000 + number)
            try store.storeVariant(variant("\(number)", of: original.digest, small), body: small, generation: 1)
            let counters = try store.statistics()
            #expect(counters.originals.bytes <= 400_000 && counters.variants.bytes <= 150_000)
        }
        let counters = try store.statistics()
        #expect(counters.originals.evictions > 0 && counters.variants.evictions > 0)
        #expect(counters.records.entries == 60)
        #expect(try store.records(source: "http://a/0").count == 1)
        #expect(try store.verify().isClean)
        let large = bytes(500_000, seed: 5)
        #expect(try store.storeOriginal(record("http://large/", large), body: large, generation: 1))
        #expect(try store.originalBody(digest: digest(large)) == nil)
        #expect(try store.statistics().originals.refused == 1)
    }

    @Test func `a variant in use outlives one stored after it`() throws {
        var configuration = DiskStoreConfiguration()
        configuration.variants = 35_000
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        let entries = (0..<4).map { ($0, bytes(10_000, seed: $0)) }.map {
            (variant("\($0)", of: digest([]), $1), $1)
        }
        for (entry, body) in entries.prefix(3) { try store.storeVariant(entry, body: body, generation: 1) }
        _ = try store.variant(key: entries[0].0.key, of: entries[0].0.originalDigest)
        try store.storeVariant(entries[3].0, body: entries[3].1, generation: 1)
        let left = try entries.map { try store.holdsVariant(key: $0.0.key, of: $0.0.originalDigest) }
        #expect(left == [true, false, true, true])
    }

    @Test(arguments: [0, 1, 2, 3]) func `a damaged body is a miss, is removed and counted`(kind: Int) throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(kind == 0 ? 1_000 : 100_000, seed: 3)
        let entry = variant("v", of: digest([]), body)
        try store.storeVariant(entry, body: body, generation: 1)
        let file = "bodies/\(entry.digest.prefix(2))/\(entry.digest)"
        switch kind {
        case 0: try folder.sql("UPDATE bodies SET data = CAST(substr(data, 1, 999) || x'00' AS BLOB)")
        case 1: folder.overwrite(file, at: 50_000, with: [body[50_000] ^ 1])
        case 2: truncate("\(folder.path)/\(file)", 99_999)
        default: unlink("\(folder.path)/\(file)")
        }
        #expect(try store.variant(key: entry.key, of: entry.originalDigest) == nil)
        #expect(try !store.holdsVariant(key: entry.key, of: entry.originalDigest))
        let counters = try store.statistics().variants
        #expect(counters.corrupt == 1 && counters.hits == 0 && counters.misses == 1 && counters.entries == 0)
        #expect(access("\(folder.path)/\(file)", F_OK) != 0)
        #expect(try store.verify().isClean)
        #expect(try store.storeVariant(entry, body: body, generation: 1))
        #expect(try store.variant(key: entry.key, of: entry.originalDigest)?.body == body)
    }

    @Test func `a purge removes every digest a source has had and voids work begun before`() throws {
        let store = try DiskStore(folder: folder.path)
        let bodies = [bytes(70_000, seed: 1), bytes(80, seed: 2)]
        let generation = try store.generationNow()
        for body in bodies {
            try store.storeOriginal(record("http://a/", body), body: body, generation: generation)
            let entry = variant("\(body.count)", of: digest(body), body)
            try store.storeVariant(entry, body: body, generation: generation, source: "http://a/")
        }
        let other = bytes(90, seed: 3)
        try store.storeOriginal(record("http://b/", other), body: other, generation: generation)
        let result = try store.purge(source: "http://a/")
        #expect(result.records == 1 && result.variants == 2 && result.digests == Set(bodies.map { digest($0) }))
        #expect(try store.records(source: "http://a/").isEmpty)
        #expect(try store.records(source: "http://b/").count == 1)
        #expect(try !store.storeOriginal(record("http://a/", bodies[1]), body: bodies[1], generation: generation))
        let late = variant("late", of: digest(bodies[0]), other)
        #expect(try !store.storeVariant(late, body: other, generation: generation))
        #expect(try store.storeVariant(late, body: other, generation: store.generationNow()))
        #expect(try store.verify().isClean)
        try store.clear()
        #expect(try !store.storeVariant(late, body: other, generation: result.mark.rawValue))
        #expect(try store.statistics().variants.entries == 0)
        #expect(try store.verify().isClean)
    }

    @Test func `each store is one transaction, and a flush writes only what has not been written`() throws {
        let store = try DiskStore(folder: folder.path)
        func writes() throws -> Int { try store.perform { index throws(StoreError) in index.writes } }
        let before = try writes()
        let body = bytes(1_000, seed: 1)
        let entry = variant("v", of: digest(body), body)
        #expect(try store.records(source: "http://a/").isEmpty)
        #expect(try store.storeOriginal(record("http://a/", body), body: body, generation: 1))
        #expect(try store.variant(key: entry.key, of: digest(body)) == nil)
        #expect(try store.storeVariant(entry, body: body, generation: 1))
        try store.flush()
        #expect(try writes() == before + 2)
        #expect(try store.variant(key: entry.key, of: digest(body)) != nil)
        try store.flush()
        try store.flush()
        #expect(try writes() == before + 3)
    }

    @Test func `two stores and four threads share one folder`() async throws {
        var configuration = DiskStoreConfiguration()
        configuration.variants = 600_000
        let stores = try (0..<2).map { _ in try DiskStore(folder: folder.path, configuration: configuration) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                let store = stores[task % 2]
                group.addTask {
                    for round in 0..<40 {
                        let number = (round * 3 + task) % 20
                        let body = bytes(number % 4 == 0 ? 80_000 : 2_000, seed: number)
                        let entry = variant("\(number)", of: digest([]), body)
                        if let found = try store.variant(key: entry.key, of: entry.originalDigest) {
                            if found.body != body { Issue.record("another body") }
                        } else {
                            try store.storeVariant(entry, body: body, generation: 1)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let counters = try stores[0].statistics().variants
        #expect(counters.bytes <= 600_000 && counters.corrupt == 0 && counters.entries > 0)
        #expect(try stores[1].verify().isClean)
    }
}
