import Glibc
import Pipeline

/// Two processes on one folder: how fast one reads alone, and how fast while the other writes.
struct SharedFolder {
    let folder: String
    /// Entries of `store-bench disk` that are there.
    let entries: Int
    private static let seconds = 2

    init(_ folder: String, _ entries: Int) throws {
        self.folder = folder
        self.entries = entries
    }

    private func store(_ folder: String) throws -> DiskStore {
        var configuration = DiskStoreConfiguration()
        configuration.variants = 1 << 50
        return try DiskStore(folder: folder, configuration: configuration)
    }

    /// Beside it, what the reader keeps while the other writes to a folder of its own, `FOLDER-elsewhere`: what is lost then
    /// is the machine's doing, whose processors share caches and memory.
    func run(rounds: Int) throws {
        let elsewhere = folder + "-elsewhere"
        let (writer, other) = (try store(folder), try store(elsewhere))
        var next = entries * 2
        var figures: [String: [Double]] = [:]
        for _ in 0..<rounds {
            let alone = try rate(of: startReader())
            figures["reads-alone", default: []].append(alone)
            for (measure, store) in [("reads-kept", writer), ("reads-kept-elsewhere", other)] {
                let reader = try startReader()
                let puts = try write(to: store, from: &next)
                figures[measure, default: []].append(try rate(of: reader) / alone)
                if measure == "reads-kept" { figures["writes-meanwhile", default: []].append(puts) }
            }
        }
        for (measure, unit) in [
            ("reads-alone", "/s"), ("reads-kept", "x"), ("reads-kept-elsewhere", "x"), ("writes-meanwhile", "/s"),
        ] { report("share", entries, measure, median(figures[measure] ?? []), unit) }
        writer.close()
        other.close()
    }

    /// Writes for as long as the reader reads.
    /// - Returns: puts a second.
    private func write(to store: DiskStore, from next: inout Int) throws -> Double {
        let workload = Workload()
        let generation = try store.generationNow()
        let (begun, first) = (wall(), next)
        while wall() - begun < Double(Self.seconds) * 1e6 {
            let entry = Workload.variant(next, length: Workload.length)
            try store.storeVariant(
                entry, body: workload.bytes(next, length: Workload.length), generation: generation,
                source: Workload.source(next))
            next += 1
        }
        return Double(next - first) / (wall() - begun) * 1e6
    }

    private func startReader() throws -> UnsafeMutablePointer<FILE> {
        let program = quoted(CommandLine.arguments[0])
        guard let reader = popen("exec \(program) read \(quoted(folder)) \(entries) \(Self.seconds)", "r") else {
            throw BenchError("cannot start a second process")
        }
        return reader
    }

    private func quoted(_ text: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }

    private func rate(of reader: UnsafeMutablePointer<FILE>) throws -> Double {
        let text = line(of: reader)
        guard pclose(reader) == 0, let rate = text.flatMap({ Double($0) }) else {
            throw BenchError("the second process failed")
        }
        return rate
    }

    /// What the second process does: reads for so long and prints how many a second.
    func read(seconds: Int) throws {
        let store = try store(folder)
        var random = SplitMix(seed: 11)
        let keys = (0..<20_000).map { _ in
            let number = Int(random.next() % UInt64(entries))
            return (key: Workload.key(number), original: Workload.original(of: number))
        }
        for (key, original) in keys.prefix(500) { _ = try store.variant(key: key, of: original) }
        var count = 0
        let begun = wall()
        while wall() - begun < Double(seconds) * 1e6 {
            let (key, original) = keys[count % keys.count]
            _ = try store.variant(key: key, of: original)
            count += 1
        }
        print(Double(count) / (wall() - begun) * 1e6)
    }
}

func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
}
