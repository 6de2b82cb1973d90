@_spi(Benchmarks) import PipelineCaching
import Synchronization

/// Measures the memory tier on one thread. All entries share one body, so that memory grows only by bookkeeping.
struct MemoryBench {
    let entries: Int

    func run() throws {
        let body = Workload().bytes(0, length: Workload.length)
        let before = resident()
        let store = MemoryStoreProbe(budget: 1 << 40)
        let values = min(1_000, entries)
        let begun = cpu()
        var makes = 0.0
        for start in stride(from: 0, to: entries, by: values) {
            let made = cpu()
            let some = (start..<min(entries, start + values)).map { Workload.variant($0, length: body.count) }
            makes += cpu() - made
            for entry in some { store.insert(entry, body: body) }
        }
        report("memory", entries, "put", (cpu() - begun - makes) / Double(entries), "us")
        report("memory", entries, "resident", Double(resident() - before) / Double(entries), "B/entry")
        report("memory", entries, "charged", Double(store.counters.bytes) / Double(entries) - 8_000, "B/entry")

        try gets("gets") { store.find($0) }
        // A minimal thread-safe store as a baseline: the ratio to it makes the figures above comparable across
        // machines.
        let shards = (0..<16).map { _ in Shard() }
        for number in 0..<entries {
            let entry = Workload.variant(number, length: body.count)
            shards[Shard.of(entry.key)].entries.withLock { $0[entry.key] = Kept(entry, body) }
        }
        try gets("gets-peer") { key in
            shards[Shard.of(key)].entries.withLock { $0[key] } != nil
        }
    }

    /// Measures gets with freshly made keys, as a server has them; they are made in batches of a hundred, outside the
    /// measured time.
    private func gets(_ measure: String, isThere: (String) -> Bool) throws {
        var random = SplitMix(seed: 3)
        var found = 0
        var spent = 0.0
        let gets = 4_000_000
        for _ in 0..<gets / 100 {
            let keys = (0..<100).map { _ in Workload.key(Int(random.next() % UInt64(entries))) }
            let begun = cpu()
            for key in keys where isThere(key) { found += 1 }
            spent += cpu() - begun
        }
        guard found == gets else { throw BenchError("entries are missing") }
        report("memory", entries, measure, Double(found) / spent, "M/s")
    }
}

/// One of several dictionaries, each with its own lock.
private final class Shard: Sendable {
    let entries = Mutex<[String: Kept]>([:])

    /// The index of the shard, of 16, that a key belongs to.
    static func of(_ key: String) -> Int { Int(key.utf8.last ?? 0) & 15 }
}

private final class Kept: Sendable {
    let entry: VariantEntry
    let body: [UInt8]

    init(_ entry: VariantEntry, _ body: [UInt8]) { (self.entry, self.body) = (entry, body) }
}
