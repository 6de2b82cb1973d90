import FaultyCalls
import Glibc
import Pipeline
import Synchronization
import Variants

/// Runs look-ups concurrently with writers, checkpoints and blocked system calls.
enum Contention {
    struct Problem: Error, CustomStringConvertible {
        var description: String
        init(_ description: String) { self.description = description }
    }

    // MARK: Held calls

    private static let look = 0..<24

    /// Blocks system calls of a thread that stores, deletes and commits, then of three look-ups, and checks that other
    /// look-ups still succeed.
    static func lookUpWhileHeld(_ folder: String) throws -> String {
        var configuration = DiskStoreConfiguration()
        configuration.fsync = true
        let store = try DiskStore(folder: folder, configuration: configuration)
        for number in look { try put(number, in: store) }
        let writer = OwnedThreads(count: 1)
        for (name, part, kinds) in [
            ("fdatasync", "cache.sqlite", faulty_syncs), ("COMMIT", "cache.sqlite-wal", faulty_writes),
            ("unlink", "/bodies/", faulty_unlinks),
        ] {
            faulty_hold(part, Int32(kinds))
            let number = look.upperBound + kinds
            writer.submit {
                try? put(number, in: store)
                _ = try? store.purge(source: Contents.source(0, 5))
            }
            faulty_wait_held(1)
            guard try found(1_000, in: store) == 1_000 else { throw Problem("look-ups failed while \(name) was held") }
            guard faulty_held() > 0 else { throw Problem("\(name) was not held") }
            faulty_release()
            writer.drain()
            try put(5, in: store)
        }
        // Block three look-ups while they read a body file; a fourth must still find a small body.
        let readers = OwnedThreads(count: 3)
        let ended = Atomic<Int>(0)
        faulty_hold("/bodies/", Int32(faulty_reads))
        for _ in 0..<3 {
            readers.submit {
                if (try? Contents.variant(0, 7, in: store)) != nil { ended.add(1, ordering: .relaxed) }
            }
        }
        faulty_wait_held(3)
        guard try Contents.variant(0, 2, in: store) != nil, faulty_held() == 3 else {
            throw Problem("a look-up waited for three others")
        }
        faulty_release()
        readers.drain()
        guard ended.load(ordering: .relaxed) == 3 else { throw Problem("a held look-up failed") }
        for threads in [writer, readers] { threads.stop() }
        store.close()
        return "held"
    }

    private static func put(_ number: Int, in store: DiskStore) throws {
        // Every eighth body is large enough for a file.
        let body = Contents.body(number)
        _ = try store.storeVariant(
            Contents.variant(0, number, body: body), body: body, generation: store.generationNow(),
            source: Contents.source(0, number))
    }

    /// How many of `count` look-ups of small bodies, on four threads, succeed.
    private static func found(_ count: Int, in store: DiskStore) throws -> Int {
        let threads = OwnedThreads(count: 4)
        let found = Atomic<Int>(0)
        for number in 0..<count {
            threads.submit {
                if (try? Contents.variant(0, number % 4, in: store)) != nil { found.add(1, ordering: .relaxed) }
            }
        }
        threads.stop()
        return found.load(ordering: .relaxed)
    }

    // MARK: Checkpoints of several processes

    static func storeWatched(_ folder: String, _ counters: String, _ count: Int) throws -> String {
        // A commit syncs the WAL when it starts over, which may take seconds on a busy disk.
        var configuration = DiskStoreConfiguration()
        configuration.busyMilliseconds = 120_000
        let store = try DiskStore(folder: folder, configuration: configuration)
        faulty_watch(counters)
        let process = Int(getpid())
        for number in 0..<count {
            // Each put writes some ten pages to the WAL, so a checkpoint runs about every two hundred puts.
            let body =
                [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 60_000)
                + Array("\(process) \(number)".utf8)
            _ = try store.storeVariant(
                Contents.variant(process, number, body: body), body: body, generation: store.generationNow(),
                source: nil)
        }
        store.close()
        var (overlaps, copies) = (0, 0)
        faulty_watched(&overlaps, &copies)
        return "overlaps \(overlaps), pages copied \(copies)"
    }

    // MARK: Stress

    /// Compares bodies with their keys on four threads while a fifth stores, evicts, purges and checkpoints.
    static func stress(_ folder: String, reads: Int, seed: Int) throws -> String {
        let keys = 2_000
        var configuration = DiskStoreConfiguration()
        configuration.variants = 8_000_000
        let store = try DiskStore(folder: folder, configuration: configuration)
        let wrong = Atomic<Int>(0)
        let hits = Atomic<Int>(0)
        let writes = Atomic<Int>(0)
        let left = Atomic<Int>(reads)
        let writer = OwnedThreads(count: 1)
        writer.submit {
            var numbers = Numbers(seed)
            while left.load(ordering: .relaxed) > 0 {
                let number = numbers.below(keys)
                if numbers.below(200) == 0 {
                    _ = try? store.purge(source: Contents.source(0, number))
                } else {
                    let body = stressBody(number, version: numbers.below(50))
                    _ = try? store.storeVariant(
                        stressEntry(number, body), body: body, generation: store.generationNow(),
                        source: Contents.source(0, number))
                }
                writes.add(1, ordering: .relaxed)
            }
        }
        let readers = OwnedThreads(count: 4)
        for thread in 0..<4 {
            readers.submit {
                var numbers = Numbers(seed &+ thread &+ 1)

                while left.subtract(1, ordering: .relaxed).newValue >= 0 {
                    let number = numbers.below(keys)
                    guard let found = try? store.variant(key: keyOf[number], of: originalOf[number]) else { continue }
                    hits.add(1, ordering: .relaxed)
                    if !isBody(found.body, of: number) { wrong.add(1, ordering: .relaxed) }
                }
            }
        }
        readers.stop()
        writer.stop()
        let counters = try store.statistics().variants
        let report = try store.verify()
        store.close()
        let text = """
            reads \(reads), hits \(hits.load(ordering: .relaxed)), writes \(writes.load(ordering: .relaxed)), \
            evictions \(counters.evictions), corrupt \(counters.corrupt), wrong \(wrong.load(ordering: .relaxed))
            """
        guard wrong.load(ordering: .relaxed) == 0, counters.corrupt == 0, report.isClean else { throw Problem(text) }
        return text
    }

    private static let keyOf = (0..<2_000).map { Contents.key(9, $0) }
    private static let originalOf = (0..<2_000).map { Contents.digest(Array("original \($0)".utf8)) }

    /// A body with its key's number in the first eight bytes and its version in all others; some are large enough for
    /// files.
    private static func stressBody(_ number: Int, version: Int) -> [UInt8] {
        var body = [UInt8](
            repeating: UInt8(version), count: (number * 7 + version) % 97 == 0 ? 80_000 : 500 + number * 13 % 20_000)
        withUnsafeBytes(of: number) { body.replaceSubrange(0..<8, with: $0) }
        return body
    }

    private static func isBody(_ body: [UInt8], of number: Int) -> Bool {
        let found = body.withUnsafeBytes { $0.loadUnaligned(as: Int.self) }
        return found == number && body[8...].allSatisfy { $0 == body[8] }
    }

    private static func stressEntry(_ number: Int, _ body: [UInt8]) -> VariantEntry {
        VariantEntry(
            key: keyOf[number], originalDigest: originalOf[number], digest: Contents.digest(body), length: body.count,
            format: .webp, width: 3, height: 2, recipe: "thumbnail:3x2", cost: Double(1 + number % 20), created: 1)
    }
}
