import Glibc
@_spi(Benchmarks) import PipelineCaching

/// Compares bodies inside the index with bodies in files: the cost of a put and a get, by length.
struct InlineBench {
    let folder: String
    /// Entries of each length; fewer (but at least 100) if they would take more than 256 MiB.
    let count: Int
    private let workload = Workload()
    private static let rounds = 3

    init(folder: String, count: Int) throws {
        self.folder = folder
        self.count = count
    }

    func run() throws {
        for length in [2, 8, 16, 32, 64, 128, 256].map({ $0 * 1024 }) {
            let entries = max(100, min(count, (256 << 20) / length))
            var figures: [String: [Double]] = [:]
            for round in 0..<Self.rounds {
                for isInline in [true, false] {
                    let kind = isInline ? "inline" : "file"
                    let place = "\(folder)/\(kind)-\(length)-\(round)"
                    let (put, get, puts) = try measure(place, length, entries, inlineLimit: isInline ? 1 << 30 : 0)
                    figures["put-\(kind)", default: []].append(put)
                    figures["get-\(kind)", default: []].append(get)
                    figures["put-\(kind)-wall", default: []].append(puts)
                }
            }
            for (measure, values) in figures.sorted(by: { $0.key < $1.key }) {
                report("inline-\(length / 1024)kB", entries, measure, median(values), "us")
            }
        }
    }

    /// Microseconds of CPU per put and per get, and of wall time per put.
    private func measure(
        _ place: String, _ length: Int, _ entries: Int, inlineLimit: Int
    ) throws -> (put: Double, get: Double, putWall: Double) {
        var configuration = DiskStoreConfiguration()
        configuration.variants = 1 << 50
        configuration.inlineLimit = inlineLimit
        let store = try DiskStoreProbe(folder: place, configuration: configuration)
        let generation = try store.generationNow()
        let begun = (cpu(), wall())
        for number in 0..<entries {
            try store.store(
                Workload.variant(number, length: length), body: workload.bytes(number, length: length),
                generation: generation, source: Workload.source(number))
        }
        let put = ((cpu() - begun.0) / Double(entries), (wall() - begun.1) / Double(entries))
        var random = SplitMix(seed: 5)
        let keys = (0..<entries).map { _ in
            let number = Int(random.next() % UInt64(entries))
            return (key: Workload.key(number), original: Workload.original(of: number))
        }
        let before = cpu()
        for (key, original) in keys {
            guard try store.readVariant(key, of: original) else {
                throw BenchError("an entry of \(length) bytes is missing")
            }
        }
        let get = (cpu() - before) / Double(entries)
        // Empty the store, so that the bodies of successive measurements do not add up on the disk.
        try store.clear()
        store.close()
        return (put.0, get, put.1)
    }
}
