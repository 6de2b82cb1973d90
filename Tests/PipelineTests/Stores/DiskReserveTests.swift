@testable import PipelineCaching
import Glibc
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Deleting on a file system without a free byte.
@Suite(.enabled(if: SmallDisk.isPermitted, "needs leave to mount a tmpfs"))
struct DiskReserveTests {
    let folder = CacheFolder()

    private static let reserve = ReserveFile.bytes

    private func opened(budget: Int = 1 << 30) throws -> DiskStore {
        var configuration = DiskStoreConfiguration()
        configuration.freeSpace = 0
        configuration.originals = budget
        configuration.variants = budget
        return try DiskStore(folder: folder.path, configuration: configuration)
    }

    private static let content = bytes(90_000, seed: 1)

    /// A body like no other.
    private func body(_ number: Int, _ count: Int) -> [UInt8] {
        var body = Array(Self.content.prefix(count))
        withUnsafeBytes(of: number) { body.replaceSubrange(0..<8, with: $0) }
        return body
    }

    /// Numbers below this have one source.
    private static let together = 300

    private func source(_ number: Int) -> String {
        number < Self.together ? "http://a.example/many" : "http://a.example/\(number)"
    }

    private func put(_ number: Int, _ body: [UInt8], in store: DiskStore) throws(StoreError) {
        try store.storeVariant(
            variant("\(number)", of: digest(bytes(4, seed: number)), body), body: body,
            generation: store.generationNow(), source: source(number))
    }

    /// Stores so many variants of a thousand bytes in one transaction.
    private func put(many: Int, in store: DiskStore) throws {
        try store.inOneTransaction { () throws(StoreError) in
            for number in 0..<many { try put(number, body(number, 1_000), in: store) }
        }
    }

    private enum Deletion: String, CaseIterable {
        case trimToNumber, trimByAge, purgeOne, purgeMany, purgePrefix, clear

        /// - Returns: how many variants went.
        func callAsFunction(_ store: DiskStore) throws -> Int {
            switch self {
            case .trimToNumber:
                var request = TrimRequest()
                request.maxEntries = 10
                return try store.trim(request).variants
            case .trimByAge:
                var request = TrimRequest()
                request.unusedFor = .seconds(-1)
                return try store.trim(request).variants
            case .purgeOne: return try store.purge(source: "http://a.example/599").variants
            case .purgeMany: return try store.purge(source: "http://a.example/many").variants
            case .purgePrefix:
                return try store.purge(SourceSelection(prefixes: ["http://a.example/"])).variants
            case .clear: return try store.clear().variants
            }
        }

        func left(of many: Int) -> Int {
            switch self {
            case .trimToNumber: 10
            case .purgeOne: many - 1
            case .purgeMany: many - DiskReserveTests.together
            case .trimByAge, .purgePrefix, .clear: 0
            }
        }
    }

    @Test(arguments: Deletion.allCases, [false, true])
    private func `without a free byte everything that deletes works, whether the log is short or long`(
        deletion: Deletion, isLogLong: Bool
    ) throws {
        let disk = try #require(SmallDisk(at: folder.path, kilobytes: 32 << 10))
        defer { disk.unmount() }
        var store = try opened()
        defer { store.close() }
        #expect(folder.size("reserve") == Self.reserve)
        let many = 600
        try put(many: many, in: store)
        if !isLogLong {
            // The next deletion makes it longer.
            store.close()
            try folder.sql("PRAGMA wal_checkpoint(TRUNCATE)")
            store = try opened()
        }
        disk.fill("other")
        #expect(disk.free == 0)
        let gone = try deletion(store)
        #expect(gone == many - deletion.left(of: many))
        #expect(try store.statistics().variants.entries == deletion.left(of: many))
        // Taken again once there is room.
        unlink("\(folder.path)/other")
        store.shrink()
        #expect(folder.size("reserve") == Self.reserve)
        #expect(try store.verify().isClean)
    }

    /// Stores until the file system is full; bodies of both kinds.
    private func fill(_ store: DiskStore, from first: Int) -> StoreError? {
        for number in first..<first + 1_000 {
            do throws(StoreError) {
                try put(number, body(number, number % 4 == 0 ? 90_000 : 3_000), in: store)
            } catch {
                return error
            }
        }
        return nil
    }

    @Test(arguments: [1 << 30, 4 << 20])
    func `filling from outside and from inside, purging, trimming and clearing go on and on`(budget: Int) throws {
        let disk = try #require(SmallDisk(at: folder.path, kilobytes: 32 << 10))
        defer { disk.unmount() }
        let server = try opened(budget: budget)
        defer { server.close() }
        for round in 0..<3 {
            for number in 0..<100 { try put(number, body(number, 20_000), in: server) }
            // The purging process comes and goes, like a command.
            func deleting(_ body: (DiskStore) throws -> Void) throws {
                if round % 2 == 0 { disk.fill("other") }
                let error = fill(server, from: 10_000 * (round + 1))
                if budget == 1 << 30 || round % 2 == 0 { #expect(error?.code == .full) }
                disk.fill("other")
                let store = try opened(budget: budget)
                try body(store)
                store.close()
            }
            try deleting { store in
                _ = try store.purge(source: source(5))
                #expect(try !store.holdsVariant(key: digest(Array("5".utf8)), of: digest(bytes(4, seed: 5))))
            }
            try deleting { store in
                var request = TrimRequest()
                request.maxEntries = 20
                _ = try store.trim(request)
                #expect(try store.statistics().variants.entries <= 20)
            }
            try deleting { store in
                try store.clear()
                #expect(try store.statistics().variants.entries == 0)
            }
            unlink("\(folder.path)/other")
        }
        try put(7, bytes(20_000, seed: 7), in: server)
        #expect(try server.variant(key: digest(Array("7".utf8)), of: digest(bytes(4, seed: 7)))?.body.count == 20_000)
        #expect(folder.size("reserve") == Self.reserve)
        let report = try server.verify()
        #expect(report.isClean, "\(report)")
    }

    @Test func `newcomers are refused while the reserve cannot be filled, and entries stay readable`() throws {
        let disk = try #require(SmallDisk(at: folder.path, kilobytes: 16 << 10))
        defer { disk.unmount() }
        let store = try opened()
        defer { store.close() }
        try put(1, bytes(1_000, seed: 1), in: store)
        unlink("\(folder.path)/reserve")
        disk.fill("other")
        truncate("\(folder.path)/other", off_t((folder.size("other") ?? 0) - 300_000))
        let error = #expect(throws: StoreError.self) { try put(2, bytes(1_000, seed: 2), in: store) }
        #expect(
            error?.code == .full && error?.message.contains("cannot reserve") == true,
            "\(String(describing: error))")
        #expect(try store.statistics().variants.refused == 1)
        #expect(try store.variant(key: digest(Array("1".utf8)), of: digest(bytes(4, seed: 1))) != nil)
        unlink("\(folder.path)/other")
        try put(2, bytes(1_000, seed: 2), in: store)
        #expect(folder.size("reserve") == Self.reserve)
        #expect(try store.verify().isClean)
    }

    @Test func `the reserve is filled below the floor too`() throws {
        let disk = try #require(SmallDisk(at: folder.path, kilobytes: 16 << 10))
        defer { disk.unmount() }
        try opened().close()
        unlink("\(folder.path)/reserve")
        var configuration = DiskStoreConfiguration()
        configuration.freeSpace = 1 << 40
        try DiskStore(folder: folder.path, configuration: configuration).close()
        #expect(folder.size("reserve") == Self.reserve)
    }

    @Test func `a cache that is read-only here is verified, and not repaired`() throws {
        let disk = try #require(SmallDisk(at: folder.path, kilobytes: 16 << 10))
        defer { disk.unmount() }
        let orphan = digest([1])
        do {
            let store = try opened()
            try put(1, bytes(90_000, seed: 1), in: store)
            try put(2, bytes(1_000, seed: 2), in: store)
        }
        mkdir("\(folder.path)/bodies/\(orphan.prefix(2))", 0o700)
        folder.overwrite("bodies/\(orphan.prefix(2))/\(orphan)", at: 0, with: [1])
        try #require(disk.mayWrite(false))
        do {
            let store = try opened()
            let report = try store.verify()
            #expect(report.bodiesChecked == 2 && report.faults == [.orphanFiles: 1])
            let error = #expect(throws: StoreError.self) { try store.verify(repair: true) }
            #expect(error?.code == .unavailable && error?.message.contains("the cache folder is read-only") == true)
        }
        try #require(disk.mayWrite(true))
        let store = try opened()
        #expect(try store.verify(repair: true)[.orphanFiles] == 1)
        #expect(try store.verify().isClean)
    }

    @Test func `an intent file of another process with the same number is left alone`() throws {
        try DiskStore(folder: folder.path).close()
        let files = BodyFiles(folder: folder.path)
        let name = digest([1])
        let first = try files.createIntentFile(name)
        let dash = try #require(first.lastIndex(of: "-"))
        let serial = try #require(Int(first[first.index(after: dash)...]))
        let others = (1...200).map { "\(first[...dash])\(serial + $0)" }
        for other in others { close(open(other, O_WRONLY | O_CREAT | O_EXCL, 0o600)) }
        let second = try files.createIntentFile(name)
        #expect(!others.contains(second) && second != first && access(second, F_OK) == 0)
    }
}
