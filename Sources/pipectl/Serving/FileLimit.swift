import Glibc
import ImageServerNIO
import Variants

/// The limit of open files of the server (`ulimit -n`), and the number of connections that the limit allows.
///
/// If there are no free descriptors, no operation succeeds, and libdispatch terminates the process.
struct FileLimit {
    /// The maximum number of open files of the process.
    let files: Int
    /// The number of descriptors that are not available to connections. They are for the server's own files, caches,
    /// transfers and the runtime.
    private let reserve: Int
    /// The maximum number of descriptors per connection: the connection's socket, and either the file of the response
    /// or the socket and the file of a transfer. If operators have a separate address, one more descriptor is counted,
    /// because that address accepts additional connections, a quarter as many.
    private let perConnection: Int

    private static var resource: __rlimit_resource_t { .init(RLIMIT_NOFILE.rawValue) }
    private static let remedy = "raise the limit with `ulimit -n` (systemd: LimitNOFILE, containers: --ulimit nofile)"

    init(files: Int, for configuration: RunConfiguration) {
        self.files = files
        // Each event loop uses three descriptors, and each render worker uses sockets and shared memory.
        let workers = configuration.workers.maxConcurrentRenders ?? RunConfiguration.processors
        reserve = 96 + 4 * RunConfiguration.processors + 6 * workers
        perConnection = configuration.adminListen == nil ? 3 : 4
    }

    /// Raises the limit as far as this user is allowed to.
    static func raised(for configuration: RunConfiguration) -> FileLimit {
        var limit = rlimit()
        getrlimit(resource, &limit)
        let wanted = max(65_536, 5 * rlim_t(configuration.listener.connections))
        limit.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, wanted))
        // If the call fails, the limit does not change.
        if setrlimit(resource, &limit) != 0 { getrlimit(resource, &limit) }
        return FileLimit(files: Int(clamping: limit.rlim_cur), for: configuration)
    }

    /// Returns the limit that is needed for a number of client connections.
    func needed(for connections: Int) -> Int { reserve + perConnection * connections }

    /// Lowers the maximum number of connections so that they fit in the limit.
    ///
    /// - Returns: A warning, or nil if the configuration does not change.
    /// - Throws: `CommandFailure` if the limit is too low.
    func apply(to configuration: inout RunConfiguration) throws(CommandFailure) -> String? {
        let wanted = configuration.listener.connections
        let most = (files - reserve) / perConnection
        if most >= wanted { return nil }
        guard most >= 4 else {
            throw CommandFailure(
                .usage,
                "`ulimit -n` allows only \(files) open files, but this server needs at least "
                    + "\(needed(for: 4)); \(Self.remedy)")
        }
        configuration.listener.connections = most
        return
            "pipectl: warning: `ulimit -n` allows only \(files) open files, so at most \(most) clients can connect, "
            + "not \(wanted) (`server.connections`); that needs \(needed(for: wanted)) files; \(Self.remedy)"
    }
}
