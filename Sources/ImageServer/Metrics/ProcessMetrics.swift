import Glibc
import PipelineSupport

/// The process metrics that the official Prometheus client libraries report, with the same names. Render workers are
/// separate processes and are not included.
enum ProcessMetrics {
    /// The metrics in the Prometheus text format. Values that cannot be read are omitted.
    static var text: String {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        var files = rlimit()
        let knowsFiles = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files) == 0
        let pages = numbers("/proc/self/statm")
        let values: [(name: String, kind: String, meaning: String, value: Double?)] = [
            (
                "cpu_seconds_total", "counter", "user and system CPU time of this process",
                seconds(usage.ru_utime) + seconds(usage.ru_stime)
            ),
            ("max_fds", "gauge", "maximum number of open files", knowsFiles ? Double(files.rlim_cur) : nil),
            ("open_fds", "gauge", "number of open files", openFiles),
            ("resident_memory_bytes", "gauge", "resident memory", pages.dropFirst().first.map { $0 * pageSize }),
            ("start_time_seconds", "gauge", "start time of the process, in Unix seconds", start),
            ("virtual_memory_bytes", "gauge", "size of the address space", pages.first.map { $0 * pageSize }),
        ]
        var text = ""
        for (name, kind, meaning, value) in values {
            guard let value else { continue }
            text += "# HELP process_\(name) \(meaning)\n# TYPE process_\(name) \(kind)\nprocess_\(name) \(value)\n"
        }
        return text
    }

    private static let pageSize = Double(sysconf(Int32(_SC_PAGESIZE)))

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

    private static var openFiles: Double? {
        // Excludes the descriptor of the open folder itself.
        var count = -1.0
        let isRead = forEachName(in: "/proc/self/fd") { _ in
            count += 1
            return true
        }
        return isRead ? count : nil
    }

    /// The time when the process started. Calculated from the boot time and the number of ticks from boot to the start
    /// of the process (proc(5)), both as seen in this process's namespaces.
    private static let start: Double? = {
        // The program's name, in parentheses, may contain any character.
        guard let stat = text(at: "/proc/self/stat"), let name = stat.lastIndex(of: ")"),
            let line = text(at: "/proc/stat")?.split(separator: "\n").first(where: { $0.hasPrefix("btime ") }),
            let booted = Double(line.dropFirst("btime ".count))
        else { return nil }
        let fields = stat[name...].split(separator: " ")
        guard fields.count > 20, let ticks = Double(fields[20]) else { return nil }
        return booted + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }()

    private static func numbers(_ path: String) -> [Double] {
        text(at: path)?.split(separator: " ").compactMap { Double($0) } ?? []
    }

    private static func text(at path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = read(file, &piece, piece.count)
            guard count > 0 else { return count == 0 ? String(decoding: bytes, as: UTF8.self) : nil }
            bytes += piece[..<count]
        }
    }
}
