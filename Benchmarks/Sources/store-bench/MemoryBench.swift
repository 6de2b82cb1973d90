import Pipeline

/// The memory tier on one thread. All entries share one body, so that what memory grows by is bookkeeping.
struct MemoryBench {
    let entries: Int

    func run() throws {
        let body = Workload().bytes(0, length: Workload.length)
        let before = resident()
        let store = MemoryStore<VariantEntry>(budget: 1 << 40)
        let values = min(1_000, entries)
        var begun = cpu()
        var makes = 0.0
        for start in stride(from: 0, to: entries, by: values) {
            let made = cpu()
            let some = (start..<min(entries, start + values)).map { Workload.variant($0, length: body.count) }
            makes += cpu() - made
            for entry in some {
                store.insert(entry, body: body, for: entry.key, cost: entry.cost, name: entry.originalDigest)
            }
        }
        report("memory", entries, "put", (cpu() - begun - makes) / Double(entries), "us")
        report("memory", entries, "resident", Double(resident() - before) / Double(entries), "B/entry")
        report("memory", entries, "charged", Double(store.counters.bytes) / Double(entries) - 8_000, "B/entry")

        // Keys as a server has them: made a moment ago, by the hundred so that making them is not measured.
        var random = SplitMix(seed: 3)
        var found = 0
        var spent = 0.0
        let gets = 4_000_000
        for _ in 0..<gets / 100 {
            let keys = (0..<100).map { _ in Workload.key(Int(random.next() % UInt64(entries))) }
            begun = cpu()
            for key in keys where store.entry(for: key) != nil { found += 1 }
            spent += cpu() - begun
        }
        guard found == gets else { throw BenchError("entries are missing") }
        report("memory", entries, "gets", Double(found) / spent, "M/s")
    }
}
