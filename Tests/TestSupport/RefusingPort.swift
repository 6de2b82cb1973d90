import Glibc

/// A port on a loopback address that refuses connections. The port is bound but not listening, so that no other process
/// can acquire it.
public final class RefusingPort: Sendable {
    private let descriptor: Int32
    /// The port number.
    public let port: Int
    private let host: String

    /// Binds a port that the system chooses.
    ///
    /// - Parameters:
    ///   - host: An IPv4 address of the loopback interface. Default `127.0.0.1`.
    ///   - listens: Whether the port accepts connections but never reads. Default false.
    public init(host: String = "127.0.0.1", listens: Bool = false) throws(OriginError) {
        self.host = host
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw OriginError("cannot open a socket", errno) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        inet_pton(AF_INET, host, &address.sin_addr)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let fd = descriptor
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                if bind(fd, pointer, length) != 0 || (listens && listen(fd, 8) != 0) { return errno }
                return getsockname(fd, pointer, &length) == 0 ? 0 : errno
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        guard status == 0 else {
            close(descriptor)
            throw OriginError("cannot bind a port", status)
        }
    }

    deinit { close(descriptor) }

    /// Returns the absolute URL of a path on this port.
    public func url(_ path: String) -> String { "http://\(host):\(port)\(path)" }
}
