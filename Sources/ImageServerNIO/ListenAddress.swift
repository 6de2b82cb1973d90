import PipelineSupport

/// An address on which the server listens, such as `127.0.0.1:8080`, `[::1]:8080`, `*:8080`, `localhost:0`,
/// `unix:/run/pipectl.sock` or `fd:3`.
package enum ListenAddress: Sendable, Hashable, CustomStringConvertible {
    /// A host name, an address (IPv6 without brackets), or `*` for all addresses of both families. With port 0, the
    /// system chooses the port.
    case tcp(host: String, port: Int)
    /// A socket in the file system.
    case unix(path: String)
    /// A listening socket that was passed to the process at startup.
    case descriptor(Int32)

    /// The maximum length of a Unix socket's path, in bytes: `sun_path` without the terminating zero.
    private static let pathLimit = 107

    /// Parses any of the forms. Returns nil if a part is missing or invalid. An IPv6 address must be in brackets.
    package init?(_ text: String) {
        if text.hasPrefix("unix:") {
            let path = text.dropFirst(5)
            guard (1...Self.pathLimit).contains(path.utf8.count), !path.utf8.contains(0) else { return nil }
            self = .unix(path: String(path))
            return
        }
        guard let colon = text.lastIndex(of: ":") else { return nil }
        var host = text[..<colon]
        let digits = text[text.index(after: colon)...]
        guard (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy(\.isDigit),
            let port = Int(digits), port <= 65_535
        else { return nil }
        if host == "fd" {
            // Descriptors 0 to 2 are standard input, output and error.
            guard port > 2 else { return nil }
            self = .descriptor(Int32(port))
            return
        }
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }) else {
            return nil
        }
        self = .tcp(host: String(host), port: port)
    }

    package var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        case .descriptor(let number): "fd:\(number)"
        }
    }
}
