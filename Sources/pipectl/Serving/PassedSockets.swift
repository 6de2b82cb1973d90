import Glibc

/// Listening sockets that a service manager has passed (`sd_listen_fds(3)`).
enum PassedSockets {
    /// The first descriptor that is passed, `SD_LISTEN_FDS_START`.
    private static let first: Int32 = 3
    private static let limit: Int32 = 64

    /// - Parameters:
    ///   - environment: `LISTEN_FDS` is how many there are.
    ///   - process: this process; variables meant for another one, as `LISTEN_PID` says, were inherited by mistake.
    static func descriptors(_ environment: [String: String], process: pid_t) -> [Int32] {
        guard environment["LISTEN_PID"] == String(process),
            let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }),
            (1...limit).contains(count)
        else { return [] }
        return Array(first..<(first + count))
    }
}
