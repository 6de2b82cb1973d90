import Glibc
import Pipeline
import Traces

/// Measures the stores; `Benchmarks/run-stores` makes a table of its output.
///
///     store-bench disk FOLDER ENTRIES         put and hit with entries of 8 kB in a new folder, which is kept
///     store-bench mix FOLDER ENTRIES          as `disk`, with every hundredth entry replaced by an original of 1 MB
///     store-bench more FOLDER ENTRIES         put and hit again in such a folder, to alternate between two versions
///     store-bench open FOLDER ENTRIES         opening the folder and one first look-up
///     store-bench share FOLDER ENTRIES ROUNDS a second process that reads, alone and while this one writes
///     store-bench latency FOLDER ENTRIES SECONDS TURNS    wall-clock latency of look-ups, alone and beside writers
///     store-bench evict FOLDER ENTRIES        eviction in such a folder
///     store-bench peer FOLDER ENTRIES         the same entries in a plain SQLite table, in an existing folder
///     store-bench memory ENTRIES              the memory tier
///     store-bench inline FOLDER COUNT         bodies inside the index compared with bodies in files, by length
///     store-bench trace FOLDER TRACE.gz REQUESTS SHARE    a request trace through the disk tier, SHARE in percent
///
/// Each figure is a line `CASE ENTRIES MEASURE VALUE UNIT`. Microseconds are user and system CPU time of this process,
/// all threads, unless the measure ends in `wall`; `latency` measures wall time throughout.
@main
struct StoreBench {
    static func main() async {
        do {
            try await run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            let text = (error as? BenchError)?.message ?? (error as? ReplayError)?.message ?? "\(error)"
            let message = Array("store-bench: \(text)\n".utf8)
            _ = write(STDERR_FILENO, message, message.count)
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) async throws {
        switch (arguments.first ?? "", arguments.count) {
        case ("disk", 3): try DiskBench(arguments[1], try count(arguments[2]), hasOriginals: false).run()
        case ("mix", 3): try DiskBench(arguments[1], try count(arguments[2]), hasOriginals: true).run()
        case ("evict", 3): try DiskBench(arguments[1], try count(arguments[2]), hasOriginals: false).evict()
        case ("more", 3): try DiskBench(arguments[1], try count(arguments[2]), hasOriginals: false).more()
        case ("open", 3): try DiskBench.open(arguments[1], try count(arguments[2]))
        case ("share", 4): try SharedFolder(arguments[1], try count(arguments[2])).run(rounds: try count(arguments[3]))
        case ("read", 5):
            try SharedFolder(arguments[1], try count(arguments[2]))
                .read(slices: try count(arguments[3]), start: Double(try count(arguments[4])))
        case ("latency", 5):
            try await LatencyBench(
                folder: arguments[1], entries: try count(arguments[2]), seconds: Double(try count(arguments[3])),
                turns: try count(arguments[4])
            ).run()
        case ("latency-writer", 4):
            try await LatencyBench(folder: arguments[1], entries: 1, seconds: Double(try count(arguments[3])), turns: 1)
                .write(first: try count(arguments[2]))
        case ("peer", 3): try PeerBench(arguments[1], try count(arguments[2])).run()
        case ("memory", 2): try MemoryBench(entries: try count(arguments[1])).run()
        case ("inline", 3): try InlineBench(folder: arguments[1], count: try count(arguments[2])).run()
        case ("trace", 5):
            guard let share = Double(arguments[4]), share > 0 else {
                throw BenchError("`\(arguments[4])`: expected a share of the footprint in percent")
            }
            let trace = try Trace(path: arguments[2])
            try TraceBench(arguments[1], trace, requests: try count(arguments[3]), share: share / 100).run()
        default:
            throw BenchError(
                """
                usage: store-bench disk|mix|more|evict|peer FOLDER ENTRIES | open FOLDER ENTRIES | share FOLDER ENTRIES ROUNDS | latency FOLDER ENTRIES SECONDS TURNS | memory ENTRIES |
                    inline FOLDER COUNT | trace FOLDER TRACE.gz REQUESTS SHARE
                """)
        }
    }

    private static func count(_ text: String) throws -> Int {
        guard let number = Int(text), number > 0 else { throw BenchError("`\(text)`: expected a number above 0") }
        return number
    }
}

struct BenchError: Error {
    var message: String
    init(_ message: String) { self.message = message }
}

/// Prints one figure.
func report(_ name: String, _ entries: Int, _ measure: String, _ value: Double, _ unit: String) {
    let tenths = (value * 100).rounded() / 100
    print("\(name) \(entries) \(measure) \(tenths) \(unit)")
    fflush(nil)
}

/// CPU time of the process so far, user and system, all threads, in microseconds.
func cpu() -> Double { microseconds(CLOCK_PROCESS_CPUTIME_ID) }

/// Microseconds of the monotonic clock.
func wall() -> Double { microseconds(CLOCK_MONOTONIC) }

private func microseconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
}

/// The next line of a stream, without its line break.
func line(of stream: UnsafeMutablePointer<FILE>) -> String? {
    var line = [CChar](repeating: 0, count: 128)
    guard fgets(&line, Int32(line.count), stream) != nil else { return nil }
    return String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// The process's resident memory in bytes.
func resident() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    let pages = (line(of: file) ?? "").split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
}

/// Bytes on disk of everything in a folder.
func occupied(_ folder: String) -> Int {
    var bytes = 0
    guard let stream = opendir(folder) else { return 0 }
    defer { closedir(stream) }
    while let item = readdir(stream) {
        let name = withUnsafePointer(to: &item.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name == "." || name == ".." { continue }
        var info = stat()
        guard lstat("\(folder)/\(name)", &info) == 0 else { continue }
        bytes += info.st_mode & S_IFMT == S_IFDIR ? occupied("\(folder)/\(name)") : Int(info.st_blocks) * 512
    }
    return bytes
}
