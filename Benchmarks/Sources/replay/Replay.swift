import Glibc
@_spi(Benchmarks) import PipelineCaching
import Traces

/// Replays a request trace through the stores' eviction policy, or through LRU, and sums the value of the hits.
///
///     replay TRACE.gz CAPACITY_BYTES size|cost [gdsf-p|lru [COUNT [OVERHEAD]]]
///
/// A trace is gzip-compressed text with one request per line: `KEY SIZE MS` on a key's first request, `KEY` later; keys
/// are 0, 1, 2, … in order of first appearance. With `size`, every object costs the same to recreate; with `cost`, its
/// MS. A miss is followed by an insertion. COUNT limits the run to the first requests; OVERHEAD bytes are charged for
/// each object in addition to its size. The output is a line about the trace, a line about the run, and last `HITS
/// HIT_BYTES HIT_MS`, summed over the hits.
@main
struct Replay {
    var trace = Trace()
    var capacity = 0
    var usesCost = false
    var overhead = 0
    var isRecency = false

    static func main() {
        do throws(ReplayError) {
            try Replay(CommandLine.arguments).run()
        } catch {
            let message = Array("replay: \(error.message)\n".utf8)
            _ = write(STDERR_FILENO, message, message.count)
            exit(1)
        }
    }

    init(_ arguments: [String]) throws(ReplayError) {
        guard (4...7).contains(arguments.count) else {
            throw ReplayError("usage: replay TRACE.gz CAPACITY_BYTES size|cost [gdsf-p|lru [COUNT [OVERHEAD]]]")
        }
        guard let bytes = Int(arguments[2]), bytes >= 0 else {
            throw ReplayError("`\(arguments[2])` is not a capacity: expected a number of bytes")
        }
        capacity = bytes
        switch arguments[3] {
        case "size": usesCost = false
        case "cost": usesCost = true
        default: throw ReplayError("`\(arguments[3])`: expected `size` or `cost`")
        }
        switch arguments.count > 4 ? arguments[4] : "gdsf-p" {
        case "gdsf-p": isRecency = false
        case "lru": isRecency = true
        default: throw ReplayError("`\(arguments[4])`: expected `gdsf-p` or `lru`")
        }
        trace = try Trace(path: arguments[1])
        let numbers = arguments.dropFirst(5).map { Int($0) ?? -1 }
        if let wrong = numbers.firstIndex(where: { $0 < 0 }) {
            throw ReplayError("`\(arguments[5 + wrong])`: expected a number")
        }
        if let count = numbers.first { trace.requests = Array(trace.requests.prefix(count)) }
        overhead = numbers.dropFirst().first ?? 0
    }

    func run() throws(ReplayError) {
        print(
            "trace: \(trace.requests.count) requests, \(trace.sizes.count) objects, footprint \(trace.footprint) bytes,",
            "\(trace.requestedBytes) bytes and \(trace.requestedMilliseconds) ms requested")
        var (replay, recent) = (EvictionReplay(capacity: capacity), LeastRecent(capacity: capacity))
        var hits = 0
        var hitBytes = 0
        var hitMilliseconds = 0
        let begun = Self.cpuNanoseconds()
        for key in trace.requests {
            let size = trace.sizes[Int(key)]
            let milliseconds = trace.milliseconds[Int(key)]
            let isHit =
                isRecency
                ? recent.request(UInt64(key), size: size + overhead)
                : replay.request(UInt64(key), size: size + overhead, cost: usesCost ? Double(milliseconds) : 1)
            if isHit {
                hits += 1
                hitBytes += size
                hitMilliseconds += milliseconds
            }
            let bytes = isRecency ? recent.bytes : replay.bytes
            if bytes > capacity { throw ReplayError("\(bytes) bytes kept, but only \(capacity) are allowed") }
        }
        let spent = Self.cpuNanoseconds() - begun
        print(
            "run: \(spent / max(1, trace.requests.count)) ns CPU per request,",
            "\(isRecency ? recent.evictions : replay.evictions) evictions,",
            "\(isRecency ? recent.count : replay.count) objects and \(isRecency ? recent.bytes : replay.bytes) bytes kept"
        )
        print("\(hits) \(hitBytes) \(hitMilliseconds)")
    }

    private static func cpuNanoseconds() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
