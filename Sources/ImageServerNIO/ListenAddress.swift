/// Where the server listens: `127.0.0.1:8080`, `[::1]:8080`, `*:8080`, `localhost:0`, `unix:/run/pipectl.sock`, `fd:3`.
package enum ListenAddress: Sendable, Hashable, CustomStringConvertible {
    /// A name or an address, an IPv6 one without its brackets, or `*` for all addresses of both families; port 0 for one the system chooses.
    case tcp(host: String, port: Int)
    /// A socket in the file system.
    case unix(path: String)
    /// A listening socket that the process was started with.
    case descriptor(Int32)

    /// The longest path of a Unix socket, in bytes: `sun_path` without its final zero.
    private static let pathLimit = 107

    /// Reads any of the forms; nil if a part is missing or invalid. An IPv6 address stands in brackets.
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
        guard (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = Int(digits), port <= 65_535
        else { return nil }
        if host == "fd" {
            // Below are standard input, output and error.
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
