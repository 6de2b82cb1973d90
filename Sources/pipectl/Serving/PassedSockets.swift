import Glibc

/// The listening sockets that a service manager passed to the process (`sd_listen_fds(3)`).
enum PassedSockets {
    /// The first passed descriptor, `SD_LISTEN_FDS_START`.
    private static let first: Int32 = 3
    private static let limit: Int32 = 64

    /// - Parameters:
    ///   - environment: The environment. `LISTEN_FDS` is the number of sockets.
    ///   - process: The ID of this process. If `LISTEN_PID` differs, the variables were meant for a different process
    ///     and are ignored.
    static func descriptors(_ environment: [String: String], process: pid_t) -> [Int32] {
        guard environment["LISTEN_PID"] == String(process),
            let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }),
            (1...limit).contains(count)
        else { return [] }
        return Array(first..<(first + count))
    }
}
