import Glibc
import Pipeline
@_spi(Benchmarks) import PipelineFetching
import Synchronization

/// Fetches one URL over and over and prints what a fetch costs.
///
///     fetch-bench fetch|original|revalidate URL [--count N] [--flight N] [--host ADDRESS]
///
/// `fetch` measures the transport alone; `original` the pipeline, including digest and record, with a memory cache too
/// small to keep anything; `revalidate` a stored original that is revalidated every time.
///
/// It prints one line: `<CPU µs per fetch> <fetches per second> <bytes received>`. CPU time is the user and system time
/// of the whole process, without the first fetch.
@main
struct FetchBench {
    var mode = ""
    var url = ""
    var count = 20_000
    var inFlight = 64
    var rule = "127.0.0.1"

    static func main() async {
        do {
            try await FetchBench(CommandLine.arguments.dropFirst()).run()
        } catch {
            let message = Array("fetch-bench: \(error)\n".utf8)
            _ = write(STDERR_FILENO, message, message.count)
            exit(1)
        }
    }

    init(_ arguments: ArraySlice<String>) throws(BenchError) {
        var rest = arguments
        var plain: [String] = []
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("--") else {
                plain.append(argument)
                continue
            }
            guard let value = rest.popFirst() else { throw BenchError("\(argument) needs a value") }
            switch argument {
            case "--count", "--flight":
                guard let number = Int(value), number > 0 else {
                    throw BenchError("\(argument): `\(value)` is not a count")
                }
                if argument == "--count" { count = number } else { inFlight = number }
            case "--host": rule = value
            default: throw BenchError("unknown option \(argument)")
            }
        }
        guard plain.count == 2, ["fetch", "original", "revalidate"].contains(plain[0]) else {
            throw BenchError("usage: fetch-bench fetch|original|revalidate URL [--count N] [--flight N]")
        }
        (mode, url) = (plain[0], plain[1])
    }

    func run() async throws {
        var fetching = FetchConfiguration()
        fetching.allowPrivateAddresses = try AddressRule([rule])
        fetching.maxConcurrentTransfers = inFlight
        fetching.maxConcurrentTransfersPerHost = inFlight
        fetching.maxRetries = 0
        let work: @Sendable () async throws -> Int
        if mode == "fetch" {
            let transport = try TransportProbe(fetching, url: url)
            work = { try await transport.fetch().count }
        } else {
            var configuration = PipelineConfiguration()
            configuration.fetch = fetching
            configuration.acceptedTypes = ["*/*"]
            if mode == "original" { configuration.memory.originals = 1 }
            let pipeline = try ImagePipeline(configuration)
            let url = url
            let policy: CachePolicy = mode == "original" ? .reload : .revalidate
            let numbers = Counter()
            work = {
                // Vary the URL, since concurrent requests for the same one would share a fetch.
                var request = OriginalRequest(url: "\(url)?\(numbers.next() % 1024)")
                request.policy = policy
                return try await pipeline.original(for: request).body.count
            }
            if mode == "revalidate" { for _ in 0..<1024 { _ = try await work() } }
        }
        _ = try await work()
        let began = (cpu: Self.cpuSeconds(), wall: ContinuousClock.now)
        let inFlight = inFlight
        let share = count / inFlight
        let bytes = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<inFlight {
                group.addTask {
                    var bytes = 0
                    for _ in 0..<share { bytes += try await work() }
                    return bytes
                }
            }
            return try await group.reduce(0, +)
        }
        let done = share * inFlight
        let cpu = (Self.cpuSeconds() - began.cpu) / Double(done) * 1e6
        let seconds = began.wall.duration(to: .now) / .seconds(1)
        print(Double(Int(cpu * 10)) / 10, Int(Double(done) / seconds), bytes)
    }

    private static func cpuSeconds() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }
}

/// A thread-safe counter from 1.
final class Counter: Sendable {
    private let value = Atomic(0)

    func next() -> Int { value.add(1, ordering: .relaxed).newValue }
}

struct BenchError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
