import Glibc
@_spi(Benchmarks) import PipelineCaching
import Synchronization

/// Measures the wall-clock latency of disk hits at a fixed rate, without and with a concurrent writer.
///
/// Look-ups start at fixed times whether or not earlier ones have finished, so that waiting counts (no coordinated
/// omission). Idle and busy turns alternate because the machine's speed drifts; each figure is the median over the
/// turns.
struct LatencyBench {
    /// The writer of the busy turns: this process, this process with fsync, or another process.
    enum Writer: String, CaseIterable { case same, fsync, other }

    let folder: String
    /// The number of entries that `store-bench disk` put there.
    let entries: Int
    /// The length of a turn in seconds.
    let seconds: Double
    let turns: Int
    /// Look-ups per second.
    private static let rate = 2000.0
    /// Entries stored per second.
    private static let stores = 100.0

    func run() async throws {
        for writer in Writer.allCases { try await run(writer) }
    }

    private func run(_ writer: Writer) async throws {
        let probe = try DiskTierProbe(folder: folder, fsync: writer == .fsync)
        // Warm the page cache first.
        _ = await turn(probe, seconds: 3) { _ in }
        var figures: [[[Double]]] = [[], []]
        for number in 0..<turns {
            figures[0].append(await turn(probe, seconds: seconds) { _ in })
            let first =
                entries * 2 + (number + 1) * 100_000 + (Writer.allCases.firstIndex(of: writer) ?? 0) * 10_000_000
            if writer == .other {
                let process = try startWriter(first: first)
                guard line(of: process) == "ready" else { throw BenchError("the second process failed") }
                figures[1].append(await turn(probe, seconds: seconds) { _ in })
                guard pclose(process) == 0 else { throw BenchError("the second process failed") }
            } else {
                let workload = Workload()
                figures[1].append(
                    await turn(probe, seconds: seconds) { Self.store($0 + first, workload, in: probe) })
            }
        }
        await probe.close()
        for (index, name) in ["idle", "busy"].enumerated() {
            for (place, share) in ["p50", "p99", "p99.9"].enumerated() {
                report(
                    "latency-\(writer.rawValue)", entries, "\(name)-\(share)", median(figures[index].map { $0[place] }),
                    "us")
            }
        }
    }

    /// Stores entries at the fixed rate; the second process runs this.
    func write(first: Int) async throws {
        let probe = try DiskTierProbe(folder: folder, fsync: false)
        let workload = Workload()
        print("ready")
        fflush(nil)
        let begun = wall()
        var stored = 0
        while wall() < begun + seconds * 1e6 {
            Self.store(first + stored, workload, in: probe)
            stored += 1
            Self.sleep(until: begun + Double(stored) / Self.stores * 1e6)
        }
        await probe.close()
    }

    private static func store(_ number: Int, _ workload: Workload, in probe: DiskTierProbe) {
        probe.store(
            Workload.variant(number, length: Workload.length), body: workload.bytes(number, length: Workload.length),
            of: Workload.source(number))
    }

    /// Looks up at the fixed rate and returns p50, p99 and p99.9 in microseconds. Calls `store` with 0, 1, … at its own
    /// rate.
    private func turn(_ probe: DiskTierProbe, seconds: Double, store: @escaping @Sendable (Int) -> Void) async
        -> [Double]
    {
        let samples = Samples()
        let entries = entries
        await withTaskGroup(of: Void.self) { group in
            let ticks = AsyncStream<Void>.makeStream()
            let pacer = Pacer(rate: Self.rate, seconds: seconds) { _ in
                ticks.continuation.yield()
            } end: {
                ticks.continuation.finish()
            }
            let storer = Pacer(rate: Self.stores, seconds: seconds, body: store) {}
            var random = SplitMix(seed: 23)
            for await _ in ticks.stream {
                let number = Int(random.next() % UInt64(entries))
                let (key, original) = (Workload.key(number), Workload.original(of: number))
                let begun = wall()
                group.addTask {
                    let isThere = await probe.variant(key, of: original)
                    samples.add(isThere ? wall() - begun : .infinity)
                }
            }
            pacer.join()
            storer.join()
        }
        let sorted = samples.sorted()
        precondition(sorted.last?.isFinite == true, "an entry was not found")
        return [0.5, 0.99, 0.999].map { sorted[min(sorted.count - 1, Int(Double(sorted.count) * $0))] }
    }

    private func startWriter(first: Int) throws -> UnsafeMutablePointer<FILE> {
        let command = "exec '\(CommandLine.arguments[0])' latency-writer '\(folder)' \(first) \(Int(seconds))"
        guard let process = popen(command, "r") else { throw BenchError("cannot start a second process") }
        return process
    }

    fileprivate static func sleep(until time: Double) {
        let rest = time - wall()
        if rest > 0 { usleep(UInt32(rest)) }
    }
}

/// The microseconds that look-ups took; infinity for an entry that was not found.
private final class Samples: Sendable {
    private let taken = Mutex<[Double]>([])

    func add(_ microseconds: Double) { taken.withLock { $0.append(microseconds) } }
    func sorted() -> [Double] { taken.withLock { $0 }.sorted() }
}

/// A thread that calls a closure at fixed times.
private final class Pacer: Sendable {
    private let thread: pthread_t

    private final class Work {
        let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
    }

    init(rate: Double, seconds: Double, body: @escaping @Sendable (Int) -> Void, end: @escaping @Sendable () -> Void) {
        let work = Work {
            let begun = wall()
            for tick in 0..<Int(rate * seconds) {
                LatencyBench.sleep(until: begun + Double(tick) / rate * 1e6)
                body(tick)
            }
            end()
        }
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<Work>.fromOpaque(context).takeRetainedValue().body() }
                return nil
            }, Unmanaged.passRetained(work).toOpaque())
        precondition(status == 0, "no thread")
        self.thread = thread
    }

    func join() { pthread_join(thread, nil) }
}
