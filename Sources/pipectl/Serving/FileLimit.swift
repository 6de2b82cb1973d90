import Glibc
import ImageServerNIO
import Variants

/// How many files the server may open (`ulimit -n`), and how many connections it takes for that.
///
/// Without a free descriptor nothing works, and libdispatch ends the process.
struct FileLimit {
    /// Files that the process may open.
    let files: Int
    /// Descriptors that connections never take: the server's own files, and 64 for caches, transfers and the runtime.
    private let reserve: Int
    /// The socket, and the file of the answer or the socket and the file of a transfer. One more if operators have an
    /// address of their own, which takes a quarter as many connections.
    private let perConnection: Int

    private static var resource: __rlimit_resource_t { .init(RLIMIT_NOFILE.rawValue) }
    private static let remedy = "raise it: `ulimit -n` (systemd: LimitNOFILE, containers: --ulimit nofile)"

    init(files: Int, for configuration: RunConfiguration) {
        self.files = files
        // Each event loop has three, and each render worker takes sockets and shared memory.
        let workers = configuration.workers.count ?? RunConfiguration.processors
        reserve = 96 + 4 * RunConfiguration.processors + 6 * workers
        perConnection = configuration.adminListen == nil ? 3 : 4
    }

    /// Raises the limit as far as this user may.
    static func raised(for configuration: RunConfiguration) -> FileLimit {
        var limit = rlimit()
        getrlimit(resource, &limit)
        let wanted = max(65_536, 5 * rlim_t(configuration.listener.connections))
        limit.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, wanted))
        // If it is refused, the limit stays.
        if setrlimit(resource, &limit) != 0 { getrlimit(resource, &limit) }
        return FileLimit(files: Int(clamping: limit.rlim_cur), for: configuration)
    }

    /// The limit that so many connections of clients need.
    func needed(for connections: Int) -> Int { reserve + perConnection * connections }

    /// Lowers the limit of connections to what fits.
    ///
    /// - Returns: a warning; nil if nothing changes.
    /// - Throws: `CommandFailure` if too few fit.
    func apply(to configuration: inout RunConfiguration) throws(CommandFailure) -> String? {
        let wanted = configuration.listener.connections
        let most = (files - reserve) / perConnection
        if most >= wanted { return nil }
        guard most >= 4 else {
            throw CommandFailure(
                .usage,
                "`ulimit -n` permits \(files) open files, and this server needs \(needed(for: 4)) "
                    + "or more; \(Self.remedy)")
        }
        configuration.listener.connections = most
        return
            "pipectl: warning: `ulimit -n` permits \(files) open files, so at most \(most) clients may be connected and "
            + "not \(wanted) (`server.connections`); \(needed(for: wanted)) files would do; \(Self.remedy)"
    }
}
