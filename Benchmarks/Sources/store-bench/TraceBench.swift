@_spi(Benchmarks) import PipelineCaching
import Traces

/// Replays a request trace through the disk tier, with real bodies, and through the eviction policy alone.
///
/// The budget is a share of the total size of all requested objects. The disk tier charges small bodies more than their
/// bytes, so the policy is replayed twice with the same budget: with the bytes of the bodies (as `replay` does), and
/// with the bytes charged.
struct TraceBench {
    let folder: String
    let trace: Trace
    let requests: ArraySlice<UInt32>
    let share: Double
    private let bodies: [UInt8]

    init(_ folder: String, _ trace: Trace, requests: Int, share: Double) throws {
        self.folder = folder
        self.trace = trace
        self.requests = trace.requests.prefix(requests)
        self.share = share
        var random = SplitMix(seed: 2)
        bodies = (0..<(trace.sizes.max() ?? 0)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    func run() throws {
        let objects = Set(requests)
        let footprint = objects.reduce(0) { $0 + trace.sizes[Int($1)] }
        let capacity = Int(Double(footprint) * share)
        for usesCost in [false, true] {
            let measure = usesCost ? "cost" : "size"
            var disk: DiskStoreProbe? = try store("\(folder)/\(measure)", capacity)
            let least = try minCharge(of: try store("\(folder)/\(measure)-one", 1 << 40))
            report("trace-\(measure)", requests.count, "policy", policy(capacity, usesCost, least: 0), "%")
            report("trace-\(measure)", requests.count, "policy-charged", policy(capacity, usesCost, least: least), "%")
            if let disk { report("trace-\(measure)", requests.count, "disk", try replay(disk, usesCost), "%") }
            disk?.close()
            disk = nil
        }
    }

    private func store(_ folder: String, _ capacity: Int) throws -> DiskStoreProbe {
        var configuration = DiskStoreConfiguration()
        configuration.variants = capacity
        return try DiskStoreProbe(folder: folder, configuration: configuration)
    }

    /// The bytes charged for an entry with an empty body.
    private func minCharge(of store: DiskStoreProbe) throws -> Int {
        try store.store(Workload.variant(0, length: 0), body: [], generation: 1)
        return try store.statistics().variants.bytes
    }

    private func policy(_ capacity: Int, _ usesCost: Bool, least: Int) -> Double {
        var replay = EvictionReplay(capacity: capacity)
        var hits = 0
        for key in requests {
            let cost = usesCost ? Double(trace.milliseconds[Int(key)]) : 1
            if replay.request(UInt64(key), size: max(least, trace.sizes[Int(key)]), cost: cost) { hits += 1 }
        }
        return 100 * Double(hits) / Double(requests.count)
    }

    /// The hit rate in percent; every miss is followed by a put of a body of the object's length.
    private func replay(_ store: DiskStoreProbe, _ usesCost: Bool) throws -> Double {
        var hits = 0
        for key in requests {
            if try store.readVariant(Workload.key(Int(key)), of: Workload.original(of: Int(key))) {
                hits += 1
            } else {
                try put(key, usesCost: usesCost, in: store)
            }
        }
        return 100 * Double(hits) / Double(requests.count)
    }

    private func put(_ key: UInt32, usesCost: Bool, in store: DiskStoreProbe) throws {
        let length = trace.sizes[Int(key)]
        let cost = usesCost ? Double(trace.milliseconds[Int(key)]) : 1
        try store.store(
            Workload.variant(Int(key), length: length, cost: cost), body: Array(bodies[..<length]), generation: 1)
    }
}
