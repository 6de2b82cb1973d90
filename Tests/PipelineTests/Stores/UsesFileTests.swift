import Glibc
import TestSupport
import Testing

@testable import Pipeline

@Suite struct UsesFileTests {
    let folder = CacheFolder()
    private let now = 1_800_000_000.0

    init() { mkdir(folder.path, 0o700) }

    private var path: String { "\(folder.path)/uses" }

    private func note(
        _ key: UsesFile.Key, _ uses: UInt8 = 1, since: Double = 1.5, at time: Double, written: Double = 0
    ) -> (key: UsesFile.Key, note: UsesFile.Note) {
        (key, UsesFile.Note(use: UsesFile.Use(since: since, now: time, uses: uses), written: written))
    }

    private func keys(_ count: Int) -> [UsesFile.Key] { (0..<count).map { UsesFile.Key(.variants, $0 << 20 | 5) } }

    @Test func `uses of a row add up, by whoever noted them, and no other row has them`() {
        let (file, other) = (UsesFile(path: path), UsesFile(path: path))
        let keys = keys(100)
        #expect(file.use(of: keys[0], now: now) == nil)
        #expect(file.add(keys.map { note($0, 2, at: now) }, entries: 100, now: now) == 100)
        let more = [note(keys[7], 253, since: 1.25, at: now + 3), note(keys[8], 254, since: 2, at: now - 3)]
        #expect(other.add(more, entries: 100, now: now) == 2)
        for (number, key) in keys.enumerated() {
            let use = file.use(of: key, now: now)
            #expect(use?.uses == (number == 7 || number == 8 ? 255 : 2))
            #expect(use?.since == (number == 8 ? 2 : 1.5) && use?.time == (number == 7 ? now + 3 : now))
        }
        #expect(file.use(of: UsesFile.Key(.records, 5), now: now) == nil)
        #expect(file.use(of: UsesFile.Key(.originals, 1 << 20 | 5), now: now) == nil)
        var info = stat()
        #expect(stat(path, &info) == 0 && info.st_mode & 0o777 == 0o600)
        file.empty()
        #expect(other.use(of: keys[1], now: now) == nil && folder.size("uses") == 0)
    }

    @Test func `what was noted before a row was written is no use of it`() {
        let file = UsesFile(path: path)
        let key = keys(1)[0]
        _ = file.add([note(key, 200, since: 9, at: now)], entries: 1, now: now)
        _ = file.add([note(key, at: now + 2, written: now + 1)], entries: 1, now: now + 2)
        #expect(file.use(of: key, now: now + 2) == UsesFile.Use(since: 1.5, now: now + 2))
        // The same of what is still in memory.
        var noted = note(key, 200, at: now).note
        noted.add(note(key, at: now + 2, written: now + 1).note)
        noted.add(note(key, at: now + 3, written: now + 1).note)
        #expect(noted.use.uses == 2 && noted.use.time == now + 3 && noted.written == now + 1)
    }

    @Test func `uses that a row has by now are taken out, and those noted since stay`() {
        let file = UsesFile(path: path)
        let keys = keys(3)
        _ = file.add(keys.map { note($0, 5, at: now) }, entries: 3, now: now)
        let settled = file.use(of: keys[0], now: now)
        _ = file.add([note(keys[1], 3, at: now + 1)], entries: 3, now: now + 1)
        file.take([keys[0]: settled ?? UsesFile.Use(), keys[1]: settled ?? UsesFile.Use()], now: now + 1)
        #expect(file.use(of: keys[0], now: now + 1) == nil)
        #expect(file.use(of: keys[1], now: now + 1)?.uses == 3)
        #expect(file.use(of: keys[2], now: now + 1)?.uses == 5)
    }

    @Test(arguments: [0, 1e-9, 12.34567891234, 1_799_999_999.75, 1e15])
    func `a clock comes back as it was, but for what no queue notices`(since: Double) throws {
        let file = UsesFile(path: path)
        let key = keys(1)[0]
        let time = now + 0.123456789
        _ = file.add([note(key, since: since, at: time)], entries: 1, now: time)
        let use = try #require(file.use(of: key, now: time))
        #expect(use.since <= since && since - use.since <= since / Double(1 << 32))
        #expect(use.time >= time && use.time - time < 1 / 4096)
    }

    @Test func `the table grows with the entries and keeps what is in it`() {
        let (file, reader) = (UsesFile(path: path), UsesFile(path: path))
        let keys = keys(2_000)
        for (number, key) in keys.prefix(200).enumerated() {
            #expect(file.add([note(key, UInt8(1 + number), at: now)], entries: 600, now: now) == 1)
        }
        #expect(file.buckets == 256 && reader.buckets == 256)
        #expect(file.add(keys.suffix(1_800).map { note($0, at: now) }, entries: 6_000, now: now) == 1_800)
        #expect(folder.size("uses") == 2_048 * 128)
        for (number, key) in keys.enumerated() {
            #expect(reader.use(of: key, now: now)?.uses == (number < 200 ? UInt8(1 + number) : 1))
        }
        // As a kill in the middle of growing leaves it: a table of the size before, and what lies beyond is begun anew.
        truncate(path, off_t(1_500 * 128))
        reader.forget()
        #expect(reader.buckets == 1_024)
        #expect(file.add(keys.map { note($0, 9, at: now) }, entries: 6_000, now: now) == 2_000)
        #expect(folder.size("uses") == 2_048 * 128)
        #expect(keys.allSatisfy { (9...209).contains(reader.use(of: $0, now: now)?.uses ?? 0) })
    }

    @Test func `of a full bucket the row used longest ago makes room, and what is garbage before it`() {
        let file = UsesFile(path: path)
        let keys = (0..<20_000).map { UsesFile.Key(.records, $0) }.filter { $0.bucket(of: 256) == 3 }
        for (number, key) in keys.prefix(9).enumerated() {
            _ = file.add([note(key, at: now + Double((number + 5) % 9))], entries: 1, now: now + 9)
        }
        #expect((0..<9).filter { file.use(of: keys[$0], now: now + 9) == nil } == [4])
        // Of a clock that was ahead by an hour.
        _ = file.add([note(keys[10], at: now + 3_600)], entries: 1, now: now + 3_600)
        #expect(file.use(of: keys[10], now: now) == nil)
        let left = (0..<9).filter { file.use(of: keys[$0], now: now + 9) != nil }
        _ = file.add([note(keys[11], at: now + 9)], entries: 1, now: now + 9)
        #expect(file.use(of: keys[11], now: now + 9) != nil && file.use(of: keys[10], now: now + 3_600) == nil)
        #expect((0..<9).filter { file.use(of: keys[$0], now: now + 9) != nil } == left)
    }

    @Test func `of as many rows as a table has room for, all used, few are lost`() {
        let file = UsesFile(path: path)
        let keys = keys(16_384)
        #expect(file.add(keys.map { note($0, at: now) }, entries: keys.count, now: now) == keys.count)
        #expect(file.buckets == 4_096)
        #expect(keys.count { file.use(of: $0, now: now) == nil } < keys.count / 50)
    }

    enum Damage: String, CaseIterable, Sendable {
        case deleted, empty, short, garbage, ones, link, folder, fullFolder, pipe
    }

    private func damage(_ damage: Damage) {
        switch damage {
        case .empty: truncate(path, 0)
        case .short: truncate(path, 1_000)
        case .garbage: folder.overwrite("uses", at: 0, with: bytes(256 * 128, seed: 1))
        case .ones: folder.overwrite("uses", at: 0, with: [UInt8](repeating: 0xFF, count: 256 * 128))
        case .deleted, .link, .folder, .fullFolder, .pipe:
            unlink(path)
            switch damage {
            case .link: symlink("\(folder.path)/secret", path)
            case .folder, .fullFolder: mkdir(path, 0o700)
            case .pipe: mkfifo(path, 0o600)
            default: break
            }
            if damage == .fullFolder { mkdir("\(path)/a", 0o700) }
        }
    }

    @Test(arguments: Damage.allCases) func `what is done to the file costs no more than what was in it`(
        damage: Damage
    ) {
        folder.overwrite("secret", at: 0, with: [1, 2, 3])
        let (file, other) = (UsesFile(path: path), UsesFile(path: path))
        let keys = keys(200)
        #expect(file.add(keys.map { note($0, at: now) }, entries: 200, now: now) == 200)
        #expect(other.use(of: keys[0], now: now) != nil)
        self.damage(damage)
        for key in keys {
            let use = other.use(of: key, now: now)
            #expect(use.map { $0.since.isFinite && $0.time <= now + 60 } != false)
        }
        let written = file.add(keys.map { note($0, since: 1e300, at: now) }, entries: 200, now: now)
        #expect(written == (damage == .fullFolder ? 0 : 200))
        file.take([keys[1]: UsesFile.Use(since: 0, now: now)], now: now)
        for key in keys.suffix(198) { #expect((other.use(of: key, now: now) != nil) == (written > 0)) }
        #expect(folder.contents("secret") == [1, 2, 3])
        if damage == .fullFolder {
            rmdir("\(path)/a")
            #expect(file.add([note(keys[0], at: now)], entries: 200, now: now) == 1)
        }
    }

    @Test func `a file that cannot be opened now is not deleted`() {
        for cause in [EMFILE, ENFILE, ENOMEM, EIO, ENOSPC, EINTR, ENOENT, EROFS] {
            #expect(!BucketFile.isNoFile(cause), "\(cause)")
        }
        let file = UsesFile(path: path)
        let key = keys(1)[0]
        _ = file.add([note(key, at: now)], entries: 1, now: now)
        file.detach()
        // Without the folder there is nothing to open, nor to make.
        rename(folder.path, folder.path + "-elsewhere")
        #expect(file.use(of: key, now: now) == nil)
        #expect(file.add([note(key, at: now)], entries: 1, now: now) == 0)
        rename(folder.path + "-elsewhere", folder.path)
        #expect(file.use(of: key, now: now) != nil)
    }

    @Test func `while another process writes nobody waits for long, and its end lets others in`() async throws {
        let file = UsesFile(path: path)
        let keys = keys(2)
        #expect(file.add([note(keys[0], at: now)], entries: 1, now: now) == 1)
        let words = ["sh", "-c", #"exec 9<>"$0"; flock 9; echo held; exec sleep 600"#, path]
        let holder = try HelperProgram(words)
        #expect(holder.line(startingWith: "held") != nil)
        #expect(file.add([note(keys[1], at: now)], entries: 1, now: now) == 0)
        #expect(file.add([note(keys[1], at: now)], entries: 1, now: now, waiting: 2) == 0)
        file.take([keys[0]: UsesFile.Use(since: 9, now: now)], now: now)
        // Who reads needs no lock.
        #expect(file.use(of: keys[0], now: now) != nil && file.use(of: keys[1], now: now) == nil)
        holder.stop()
        #expect(file.add([note(keys[1], at: now)], entries: 1, now: now) == 1)
        #expect(file.use(of: keys[1], now: now) != nil)
    }
}
