/// Where the server listens: `127.0.0.1:8080`, `[::1]:8080`, `localhost:0`.
package struct ListenAddress: Sendable, Hashable, CustomStringConvertible {
    /// A name or an address, an IPv6 one without its brackets.
    var host: String
    /// 0 for one the system chooses.
    var port: Int

    /// Reads host and port; nil if one is missing or invalid. An IPv6 address stands in brackets.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        var host = text[..<colon]
        let digits = text[text.index(after: colon)...]
        guard (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = Int(digits), port <= 65_535
        else { return nil }
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }) else {
            return nil
        }
        self.init(host: String(host), port: port)
    }

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
