@testable import PipelineCaching
@testable import PipelineSupport
import Glibc
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Damage that disks, administrators and other programs do to a cache folder. In each case a call fails with a typed
/// error or misses, no false entry is served, and the store is whole once the trouble is over.
@Suite struct StoreFaultTests {
    let folder = CacheFolder()

    /// `opens`, `reads`, `writes`, `syncs` of FaultyCalls.h.
    @Test(
        arguments: [
            (2, EIO, 3), (2, EIO, 1), (4, EIO, 3), (4, EIO, 1), (8, EIO, 1), (4, ENOSPC, 2), (4, ENOSPC, 7),
            (4, EROFS, 1),
            (1, EACCES, 2), (1, EMFILE, 3), (15, EIO, 11), (6, EIO, 7),
        ])
    func `system calls that fail lose nothing that was stored`(kinds: Int, error: Int32, interval: Int) async throws {
        mkdir(folder.path, 0o700)
        let seed = Int.random(in: 0..<1_000_000)
        let words = [kinds, Int(error), interval, seed].map(String.init)
        let worker = try HelperProgram([builtProgram("store-worker"), "fail", folder.path] + words)
        let status = await worker.end()
        #expect(status == 0, "seed \(seed): \(worker.text)")
        // SQLite syncs on few occasions.
        if kinds != 8 { #expect(!worker.text.contains("calls that failed 0\n"), "\(worker.text)") }
    }

    @Test func `look-ups end while a sync, a commit, an unlink or three other look-ups are held`() async throws {
        let worker = try HelperProgram([builtProgram("store-worker"), "hold", folder.path])
        let status = await worker.end()
        #expect(status == 0, "\(worker.text)")
    }

    @Test func `four processes never checkpoint while another one writes`() async throws {
        guard SQLiteConnection.hasResetBug else { return }
        try DiskStore(folder: folder.path).close()
        let counters = folder.path + "-counters"
        let words = try [builtProgram("store-worker"), "overlap", folder.path, counters, "200"]
        let workers = try (0..<4).map { _ in try HelperProgram(words) }
        for worker in workers {
            let status = await worker.end()
            #expect(status == 0, "\(worker.text)")
        }
        let texts = workers.map(\.text)
        #expect(texts.allSatisfy { $0.contains("overlaps 0,") }, "\(texts)")
        #expect(!texts.allSatisfy { $0.contains("pages copied 0\n") })
        #expect(try DiskStore(folder: folder.path).verify().isClean)
    }

    @Test(arguments: [
        (3_040_001, true), (3_044_005, true), (3_044_006, false), (3_045_000, true), (3_050_006, true),
        (3_050_007, false),
        (3_051_002, true), (3_051_003, false), (3_052_000, false),
    ])
    func `versions of SQLite with the WAL-reset bug are known`(version: Int, hasBug: Bool) {
        #expect(SQLiteConnection.hasResetBug(version: version) == hasBug)
    }

    @Test func `no look-up finds another entry's body while the store changes`() async throws {
        let seed = Int.random(in: 0..<1_000_000)
        let worker = try HelperProgram([builtProgram("store-worker"), "stress", folder.path, "40000", "\(seed)"])
        let status = await worker.end()
        #expect(status == 0, "seed \(seed): \(worker.text)")
    }

    enum Damage: String, CaseIterable, Sendable {
        case empty, short, garbage, header, deleted, log
    }

    /// Does it as another program would: opening the file here would end SQLite's locks on it.
    private func damage(_ damage: Damage) throws {
        let index = "\(folder.path)/cache.sqlite"
        let words =
            switch damage {
            case .empty: ["truncate", "-s", "0", index]
            case .short: ["truncate", "-s", "12288", index]
            case .garbage: ["dd", "if=/dev/urandom", "of=\(index)", "bs=4096", "count=64", "conv=notrunc"]
            case .header: ["dd", "if=/dev/urandom", "of=\(index)", "bs=100", "count=1", "conv=notrunc"]
            case .deleted: ["rm", index]
            case .log: ["dd", "if=/dev/urandom", "of=\(index)-wal", "bs=4096", "count=64", "conv=notrunc"]
            }
        #expect(try HelperProgram(words).waitForEnd() == 0)
    }

    @Test(arguments: Damage.allCases, [false, true])
    func `an index that is destroyed, closed or in use, is created again and nothing false is served`(
        damage: Damage, isOpen: Bool
    ) throws {
        var stores = try (0..<2).map { _ in try DiskStore(folder: folder.path) }
        let bodies = (0..<12).map { bytes($0 % 3 == 0 ? 90_000 : 3_000, seed: $0) }
        for (number, body) in bodies.enumerated() {
            try stores[0].storeVariant(variant("\(number)", of: digest([]), body), body: body, generation: 1)
        }
        if !isOpen { for store in stores { store.close() } }
        if damage == .short { try folder.sql("PRAGMA wal_checkpoint(TRUNCATE)") }
        try self.damage(damage)
        if !isOpen { stores = try (0..<2).map { _ in try DiskStore(folder: folder.path) } }
        // Some calls may fail while the stores find out; the pipeline takes that as a miss.
        for round in 0..<40 {
            for (number, body) in bodies.enumerated() where (number + round) % 5 == 0 {
                do throws(StoreError) {
                    let store = stores[round % 2]
                    if let found = try store.variant(key: digest(Array("\(number)".utf8))) {
                        #expect(found.body == body, "\(damage)")
                    } else {
                        _ = try store.storeVariant(
                            variant("\(number)", of: digest([]), body), body: body, generation: store.generationNow())
                    }
                } catch {
                    #expect([.io, .damaged, .busy, .unavailable].contains(error.code), "\(error.code) \(error)")
                }
            }
        }
        // Both are at work again, on one index.
        let late = bytes(90_000, seed: 99)
        #expect(
            try stores[0].storeVariant(
                variant("late", of: digest([]), late), body: late, generation: stores[0].generationNow()))
        #expect(try stores[1].variant(key: digest(Array("late".utf8)))?.body == late)
        var report = try stores[1].verify()
        if report.isIndexDamaged {
            // In pages that were not read since; a store that has some in memory may see others.
            for store in [try DiskStore(folder: folder.path)] + stores { _ = try store.verify(repair: true) }
            report = try stores[1].verify()
        }
        #expect(report.isClean, "\(report)")
    }

    @Test func `a store that waited to make the tables looks whether its index was set aside meanwhile`() async throws {
        mkdir(folder.path, 0o700)
        let path = "\(folder.path)/rebuild.lock"
        let lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(lock) }
        #expect(flock(lock, LOCK_EX) == 0)
        let folder = folder.path
        // It waits in the kernel, where none of the threads that tests share may wait.
        let thread = OwnedThreads(count: 1)
        async let opening = thread.run { Result { try DiskStore(folder: folder) } }
        // The system reports the processes that wait for a lock, and its file.
        var info = stat()
        #expect(fstat(lock, &info) == 0)
        let waits = ":\(info.st_ino) "
        await waitOrRecord {
            !Self.text("/proc/locks").split(separator: "\n").contains { $0.contains("-> FLOCK") && $0.contains(waits) }
        }
        rename("\(folder)/cache.sqlite", "\(folder)/elsewhere")
        flock(lock, LOCK_UN)
        let store = try await opening.get()
        await thread.stopAndWait()
        let body = bytes(1_000, seed: 1)
        #expect(try store.storeVariant(variant("v", of: digest([]), body), body: body, generation: 1))
        #expect(try DiskStore(folder: folder).variant(key: digest(Array("v".utf8)))?.body == body)
        #expect(try store.verify().isClean)
    }

    private static func text(_ path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(file, &buffer, buffer.count)
            if count <= 0 { return String(decoding: text, as: UTF8.self) }
            text += buffer[..<count]
        }
    }

    // MARK: What is in the folder

    enum Planted: String, CaseIterable, Sendable {
        case flippedBit, truncated, longer, otherBytes, missing, link, pipe, owner
    }

    private func plant(_ planted: Planted, at path: String, body: [UInt8]) throws {
        let name = path.split(separator: "/").suffix(3).joined(separator: "/")
        let target = "\(folder.path)/secret"
        switch planted {
        case .flippedBit: folder.overwrite(name, at: body.count / 2, with: [body[body.count / 2] ^ 1])
        case .truncated: truncate(path, off_t(body.count - 1))
        case .longer: folder.overwrite(name, at: body.count, with: [0])
        case .otherBytes: folder.overwrite(name, at: 0, with: bytes(body.count, seed: 77))
        case .missing: unlink(path)
        case .link:
            folder.overwrite("secret", at: 0, with: body)
            unlink(path)
            symlink(target, path)
        case .pipe:
            unlink(path)
            mkfifo(path, 0o600)
        case .owner: chown(path, 12_345, 12_345)
        }
    }

    @Test(arguments: Planted.allCases, [false, true])
    func `a body file that is not what was stored is a miss, is removed and counted`(
        planted: Planted, isOriginal: Bool
    ) throws {
        if planted == .owner, geteuid() != 0 { return }
        let store = try DiskStore(folder: folder.path)
        let body = bytes(100_000, seed: 3)
        let entry = variant("v", of: digest([]), body)
        func put() throws -> Bool {
            isOriginal
                ? try store.storeOriginal(record("http://a/", body), body: body, generation: 1)
                : try store.storeVariant(entry, body: body, generation: 1)
        }
        func get() throws -> [UInt8]? {
            isOriginal
                ? try store.originalBody(digest: digest(body))
                : try store.variant(key: entry.key, of: entry.originalDigest)?.body
        }
        #expect(try put())
        let path = store.files.path(digest(body))
        try plant(planted, at: path, body: body)
        #expect(try get() == nil)
        #expect(!store.files.isThere(digest(body)))
        let counters = isOriginal ? try store.statistics().originals : try store.statistics().variants
        #expect(counters.corrupt == 1 && counters.entries == 0 && counters.hits == 0 && counters.misses == 1)
        // The target of a link stays.
        if planted == .link { #expect(access("\(folder.path)/secret", F_OK) == 0) }
        #expect(try store.verify().isClean)
        #expect(try put())
        #expect(try get() == body)
    }

    @Test(arguments: [
        "checksum = checksum + 1", "length = 7", "data = zeroblob(length)", "data = x''", "data = NULL",
        "digest = randomblob(32)", "id = 77",
    ])
    func `what the index says of a small body is checked as it is read`(change: String) throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(1_000, seed: 1)
        try store.storeOriginal(record("http://a/", body), body: body, generation: 1)
        let entry = variant("v", of: digest(body), body)
        try store.storeVariant(entry, body: body, generation: 1)
        try folder.sql("UPDATE bodies SET \(change)")
        #expect(try store.variant(key: entry.key, of: digest(body)) == nil)
        #expect(try store.originalBody(digest: digest(body)) == nil)
        #expect(try store.statistics().variants.corrupt == 1 && store.statistics().variants.entries == 0)
        #expect(try store.records(source: "http://a/").count == 1)
        _ = try store.verify(repair: true)
        #expect(try store.verify().isClean)
        #expect(try store.storeVariant(entry, body: body, generation: store.generationNow()))
        #expect(try store.variant(key: entry.key, of: digest(body))?.body == body)
    }

    @Test func `what has the name of a body and is none is removed, and other files are left`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(100_000, seed: 1)
        try store.storeVariant(variant("v", of: digest([]), body), body: body, generation: 1)
        let prefix = "bodies/\(digest(body).prefix(2))"
        let others = ["\(prefix)/notes.txt", "bodies/readme", "temporary/thesis.doc"]
        for name in others { folder.overwrite(name, at: 0, with: [1]) }
        let elsewhere = CacheFolder()
        mkdir(elsewhere.path, 0o700)
        elsewhere.overwrite("kept", at: 0, with: [1, 2, 3])
        symlink(elsewhere.path, "\(folder.path)/bodies/zz")
        let link = "\(prefix)/\(digest(body).prefix(2))\(String(repeating: "0", count: 62))"
        symlink("\(elsewhere.path)/kept", "\(folder.path)/\(link)")
        var old = [timeval(tv_sec: 1_000_000_000, tv_usec: 0), timeval(tv_sec: 1_000_000_000, tv_usec: 0)]
        utimes("\(folder.path)/temporary/thesis.doc", &old)
        let found = try store.verify()
        #expect(found.faults == [.orphanFiles: 1] && !found.isClean)
        #expect(try store.verify(repair: true)[.orphanFiles] == 1)
        #expect(folder.size(link) == nil && elsewhere.size("kept") == 3)
        #expect(try store.verify(repair: true).isClean)
        for name in others { #expect(folder.size(name) == 1) }
        #expect(try store.variant(key: digest(Array("v".utf8)))?.body == body)
    }

    @Test(arguments: ["cache.sqlite", "cache.sqlite-wal"])
    func `links in the place of our own files are removed, not followed`(name: String) throws {
        let elsewhere = CacheFolder()
        mkdir(elsewhere.path, 0o700)
        elsewhere.overwrite("kept", at: 0, with: [1, 2, 3])
        try DiskStore(folder: folder.path).close()
        unlink("\(folder.path)/\(name)")
        symlink("\(elsewhere.path)/kept", "\(folder.path)/\(name)")
        let store = try DiskStore(folder: folder.path)
        let body = bytes(100_000, seed: 1)
        let generation = try store.generationNow()
        #expect(try store.storeVariant(variant("v", of: digest([]), body), body: body, generation: generation))
        #expect(try store.variant(key: digest(Array("v".utf8)))?.body == body)
        var info = stat()
        #expect(lstat("\(folder.path)/\(name)", &info) != 0 || info.st_mode & S_IFMT != S_IFLNK)
        #expect(stat("\(elsewhere.path)/kept", &info) == 0 && info.st_size == 3)
        let counters = try store.statistics()
        #expect(counters.originals.corrupt + counters.records.corrupt == 1)
    }

    // MARK: Who may look

    @Test func `a folder open to others is closed when it is empty or a cache's; one with other files is refused`()
        throws
    {
        func mode(_ path: String) -> UInt32 {
            var info = stat()
            return stat(path, &info) == 0 ? info.st_mode & 0o777 : 0
        }
        mkdir(folder.path, 0o755)
        chmod(folder.path, 0o777)
        try DiskStore(folder: folder.path).close()
        #expect(mode(folder.path) == 0o700)
        chmod(folder.path, 0o755)
        for suffix in ["", "-wal", "-shm"] { chmod("\(folder.path)/cache.sqlite\(suffix)", 0o644) }
        let store = try DiskStore(folder: folder.path)
        let body = bytes(100_000, seed: 1)
        try store.storeVariant(variant("v", of: digest([]), body), body: body, generation: 1)
        #expect(mode(folder.path) == 0o700)
        for name in ["cache.sqlite", "cache.sqlite-wal", "cache.sqlite-shm", "rebuild.lock"] {
            #expect(mode("\(folder.path)/\(name)") == 0o600, "\(name)")
        }
        #expect(mode(store.files.path(digest(body))) == 0o600)
        for name in ["bodies", "temporary"] { #expect(mode("\(folder.path)/\(name)") == 0o700, "\(name)") }

        for access in [0o700, 0o755] as [UInt32] {
            let home = CacheFolder()
            mkdir(home.path, access)
            chmod(home.path, access)
            home.overwrite("letter.txt", at: 0, with: [1])
            let error = #expect(throws: StoreError.self) { _ = try DiskStore(folder: home.path) }
            #expect(error?.code == .unavailable && error?.message.contains("letter.txt") == true)
            #expect(mode(home.path) == access && Glibc.access("\(home.path)/cache.sqlite", F_OK) != 0)
        }
    }

    @Test func `a folder of another user is refused by name`() throws {
        guard geteuid() == 0 else { return }
        mkdir(folder.path, 0o700)
        chown(folder.path, 12_345, 12_345)
        let error = #expect(throws: StoreError.self) { _ = try DiskStore(folder: folder.path) }
        #expect(error?.code == .unavailable && error?.message.contains("12345") == true)
        #expect(access("\(folder.path)/cache.sqlite", F_OK) != 0)
    }
}
