import Glibc
@_spi(Benchmarks) import PipelineCaching

/// Measures how fast one process reads a folder alone, and while another process writes to it.
///
/// The machine's speed changes from second to second. So one process reads all the time, in slices of half a second.
/// There are no writes in every other slice, and each slice with writes is compared with its two neighbors.
struct SharedFolder {
    let folder: String
    /// The number of entries that `store-bench disk` put there.
    let entries: Int
    /// The length of a slice in microseconds.
    private static let slice = 500_000.0
    /// Microseconds at the start of a slice that do not count, while the previous slice's data leaves the CPU caches.
    private static let settling = 100_000.0

    init(_ folder: String, _ entries: Int) throws {
        self.folder = folder
        self.entries = entries
    }

    private func store(_ folder: String) throws -> DiskStoreProbe {
        var configuration = DiskStoreConfiguration()
        configuration.variants = 1 << 50
        return try DiskStoreProbe(folder: folder, configuration: configuration)
    }

    /// Also measures the reader while the writer writes to a separate folder, `FOLDER-elsewhere`: that slowdown is due
    /// to the processors sharing caches and memory, not to the store.
    func run(rounds: Int) throws {
        let elsewhere = folder + "-elsewhere"
        let stores = [(try store(folder), "reads-kept"), (try store(elsewhere), "reads-kept-elsewhere")]
        var next = entries * 2
        // Start later: opening takes a moment, and the first look-ups read from the disk.
        let start = wall() + 1e6
        let slices = rounds * 4 + 1
        let reader = try startReader(slices: slices, start: start)
        var puts: [Double] = []
        for round in 0..<rounds {
            for (index, (store, _)) in stores.enumerated() {
                let begins = start + Double(round * 4 + index * 2 + 1) * Self.slice
                sleep(until: begins)
                let count = try write(to: store, from: &next, until: begins + Self.slice)
                if index == 0 { puts.append(Double(count) / Self.slice * 1e6) }
            }
        }
        let rates = try rates(of: reader, slices: slices)
        var alone: [Double] = []
        var kept: [[Double]] = [[], []]
        for slice in stride(from: 1, to: rates.count - 1, by: 2) {
            let beside: Double = (rates[slice - 1] + rates[slice + 1]) / 2
            alone.append(beside)
            kept[slice / 2 % 2].append(rates[slice] / beside)
        }
        report("share", entries, "reads-alone", median(alone), "/s")
        report("share", entries, "reads-kept-lowest-quarter", kept[0].sorted()[rounds / 4], "x")
        for (index, (store, measure)) in stores.enumerated() {
            report("share", entries, measure, median(kept[index]), "x")
            store.close()
        }
        report("share", entries, "writes-meanwhile", median(puts), "/s")
    }

    private func sleep(until time: Double) {
        let rest = time - wall()
        if rest > 0 { usleep(UInt32(rest)) }
    }

    /// - Returns: how many entries were put.
    private func write(to store: DiskStoreProbe, from next: inout Int, until end: Double) throws -> Int {
        let workload = Workload()
        let generation = try store.generationNow()
        let first = next
        while wall() < end {
            let entry = Workload.variant(next, length: Workload.length)
            try store.store(
                entry, body: workload.bytes(next, length: Workload.length), generation: generation,
                source: Workload.source(next))
            next += 1
        }
        return next - first
    }

    private func startReader(slices: Int, start: Double) throws -> UnsafeMutablePointer<FILE> {
        let program = quoted(CommandLine.arguments[0])
        let command = "exec \(program) read \(quoted(folder)) \(entries) \(slices) \(Int(start))"
        guard let reader = popen(command, "r") else {
            throw BenchError("cannot start a second process")
        }
        return reader
    }

    private func quoted(_ text: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }

    private func rates(of reader: UnsafeMutablePointer<FILE>, slices: Int) throws -> [Double] {
        var rates: [Double] = []
        while let text = line(of: reader), let rate = Double(text) { rates.append(rate) }
        guard pclose(reader) == 0, rates.count == slices else { throw BenchError("the second process failed") }
        return rates
    }

    /// Reads for the given number of slices and prints the reads per second of each; the second process runs this.
    ///
    /// - Parameter start: start of the first slice, in microseconds of the monotonic clock.
    func read(slices: Int, start: Double) throws {
        let store = try store(folder)
        var random = SplitMix(seed: 11)
        let keys = (0..<20_000).map { _ in
            let number = Int(random.next() % UInt64(entries))
            return (key: Workload.key(number), original: Workload.original(of: number))
        }
        var next = 0
        func read(until end: Double) throws -> Int {
            let first = next
            while wall() < end {
                let (key, original) = keys[next % keys.count]
                guard try store.readVariant(key, of: original) else {
                    throw BenchError("an entry was not found")
                }
                next += 1
            }
            return next - first
        }
        for slice in 0..<slices {
            let begins = start + Double(slice) * Self.slice
            _ = try read(until: begins + Self.settling)
            let counted = wall()
            print(Double(try read(until: begins + Self.slice)) / (wall() - counted) * 1e6)
        }
    }
}

func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
}
