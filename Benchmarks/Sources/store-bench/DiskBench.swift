import Glibc
@_spi(Benchmarks) import PipelineCaching

/// Measures the disk tier with a given number of entries in it.
struct DiskBench {
    let folder: String
    let entries: Int
    let hasOriginals: Bool
    private let workload = Workload()
    /// The number of entries over which puts are measured.
    private var sample: Int { min(20_000, entries / 2) }
    private var name: String { hasOriginals ? "mix" : "disk" }

    init(_ folder: String, _ entries: Int, hasOriginals: Bool) throws {
        self.folder = folder
        self.entries = entries
        self.hasOriginals = hasOriginals
        if entries < 200 { throw BenchError("\(entries) entries are too few to measure: 200 or more") }
    }

    private func store(_ variants: Int) throws -> DiskStoreProbe {
        var configuration = DiskStoreConfiguration()
        configuration.originals = 1 << 50
        configuration.records = 1 << 50
        configuration.variants = variants
        return try DiskStoreProbe(folder: folder, configuration: configuration)
    }

    func run() throws {
        let memory = resident()
        let store = try store(1 << 50)
        guard try store.statistics().variants.entries == 0 else {
            throw BenchError("\(folder) holds entries already: name a new folder")
        }
        try fill(store)
        if !hasOriginals { report(name, entries, "resident", Double(resident() - memory) / 1e6, "MB") }
        try hits(store)
        store.close()
        if !hasOriginals {
            report(name, entries, "on-disk", Double(occupied(folder)) / Double(entries) - 8_000, "B/entry")
        }
    }

    /// Measures puts and hits in a folder that `run` has filled, whatever was put there since.
    func more() throws {
        let store = try store(1 << 50)
        let first = 20 * entries + (try store.statistics().variants.entries)
        for (at, measure) in ["put", "put-together"].enumerated() {
            let numbers = first + at * sample / 2..<first + (at + 1) * sample / 2
            let begun = cpu()
            try put(numbers, in: store, perTransaction: measure == "put" ? 1 : 16)
            report(name, entries, measure, (cpu() - begun) / Double(numbers.count), "us")
        }
        try hits(store)
        store.close()
    }

    /// Measures eviction in a folder that `run` has filled, with its files in the page cache.
    func evict() throws {
        try readAll()
        let bytes = try store(1 << 50).statistics().variants.bytes
        // The store is exactly full: each new entry is worth more than the stored ones and evicts about one of them.
        var store = try self.store(bytes)
        let count = min(5_000, sample)
        let begun = cpu()
        // Use numbers that no other measurement has put.
        let first = 10 * entries
        try put(first..<first + count, in: store, cost: 5_000, perTransaction: 16)
        report(name, entries, "put-when-full", (cpu() - begun) / Double(count), "us")
        store.close()

        // Evict a few first, so that their pages stay in the file for reuse, as in `PeerBench`. Then evict half, and
        // return their pages to the file system.
        for (measure, fewest) in [("evict", min(1_000, entries / 10)), ("evict-give-back", entries / 2)] {
            store = try self.store(1 << 50)
            let rest = try store.statistics().variants.entries - fewest
            let before = cpu()
            let gone = try store.trimVariants(to: rest)
            report(name, entries, measure, (cpu() - before) / Double(max(1, gone)), "us")
            store.close()
        }
    }

    /// Puts all entries and measures the last `sample` of them.
    private func fill(_ store: DiskStoreProbe) throws {
        let half = sample / 2
        try put(0..<entries - sample, in: store, perTransaction: 16)
        for (measure, numbers) in [
            ("put", entries - sample..<entries - half), ("put-together", entries - half..<entries),
        ] {
            let begun = (cpu(), wall())
            try put(numbers, in: store, perTransaction: measure == "put" ? 1 : 16)
            report(name, entries, measure, (cpu() - begun.0) / Double(numbers.count), "us")
            report(name, entries, measure + "-wall", (wall() - begun.1) / Double(numbers.count), "us")
        }
    }

    /// - Parameter count: how many entries share a transaction, as they do when stored after an answer.
    private func put(
        _ numbers: Range<Int>, in store: DiskStoreProbe, cost: Double? = nil, perTransaction count: Int = 1
    ) throws {
        let generation = try store.generationNow()
        for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: count) {
            let some = start..<min(numbers.upperBound, start + count)
            if count == 1 {
                try put(start, in: store, cost, generation)
            } else {
                try store.inOneTransaction { () throws(StoreError) in
                    for number in some { try put(number, in: store, cost, generation) }
                }
            }
        }
    }

    private func put(_ number: Int, in store: DiskStoreProbe, _ cost: Double?, _ generation: UInt64) throws(StoreError)
    {
        if hasOriginals, number % 100 == 99 {
            let body = workload.bytes(number, length: Workload.originalLength)
            try store.store(Workload.original(number), body: body, generation: generation)
            return
        }
        let entry = Workload.variant(number, length: Workload.length, cost: cost)
        try store.store(
            entry, body: workload.bytes(number, length: Workload.length), generation: generation,
            source: Workload.source(number))
    }

    /// Reads the files of the folder into the page cache.
    private func readAll() throws {
        try forEachFile { file in
            var buffer = [UInt8](repeating: 0, count: 1 << 20)
            while read(file, &buffer, buffer.count) > 0 {}
        }
    }

    /// Measures hits with the folder's files in the page cache, and with none of them there.
    private func hits(_ store: DiskStoreProbe) throws {
        try readAll()
        try hits(store, "hit", count: 100_000, seed: 7)
        if !hasOriginals {
            try forEachFile { file in
                fsync(file)
                posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)
            }
            try hits(store, "hit-cold", count: 5_000, seed: 8)
        }
    }

    /// Opens the index and its WAL for reading and never closes them: closing would release the POSIX locks of the
    /// store, which has the same files open in this process.
    private func forEachFile(_ body: (CInt) -> Void) throws {
        for name in ["cache.sqlite", "cache.sqlite-wal"] {
            let file = Glibc.open("\(folder)/\(name)", O_RDONLY)
            guard file >= 0 else { throw BenchError("cannot read \(folder)/\(name)") }
            body(file)
        }
    }

    /// Measures hits on uniformly random keys.
    private func hits(_ store: DiskStoreProbe, _ measure: String, count: Int, seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let keys = (0..<count).map { _ in
            let number = Int(random.next() % UInt64(entries))
            let variant = hasOriginals && number % 100 == 99 ? number - 1 : number
            return (key: Workload.key(variant), original: Workload.original(of: variant))
        }
        for (key, original) in keys.prefix(200) { _ = try store.readVariant(key, of: original) }
        try store.flush()
        let begun = (cpu(), wall())
        var found = 0
        for (key, original) in keys where try store.readVariant(key, of: original) { found += 1 }
        // Include writing the access counts of the hits in the measurement.
        try store.flush()
        report(name, entries, measure, (cpu() - begun.0) / Double(count), "us")
        report(name, entries, measure + "-wall", (wall() - begun.1) / Double(count), "us")
        guard found == count else { throw BenchError("\(count - found) of \(count) entries were not found") }
        guard hasOriginals else { return }
        let originals = min(200, entries / 100)
        let before = cpu()
        for number in 0..<originals {
            guard try store.readOriginal(Workload.original(number * 100 + 99).digest) else {
                throw BenchError("original \(number) was not found")
            }
        }
        report(name, entries, "hit-1MB", (cpu() - before) / Double(originals), "us")
    }

    static func open(_ folder: String, _ entries: Int) throws {
        let begun = (cpu(), wall())
        let store = try DiskStoreProbe(folder: folder)
        _ = try store.readVariant(Workload.key(0), of: Workload.original(of: 0))
        let spent = (cpu() - begun.0, wall() - begun.1)
        report("disk", entries, "open", spent.0 / 1_000, "ms")
        report("disk", entries, "open-wall", spent.1 / 1_000, "ms")
    }
}
