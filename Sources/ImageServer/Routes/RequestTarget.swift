/// A request target in origin form, split as received. No part of the target is decoded.
package struct RequestTarget: Sendable {
    /// The path and query as sent, relative to the mount point.
    package let text: String
    /// The first segment of the path, which names the route. The name is empty for `/`, and nil if the target is not a
    /// path.
    let name: Substring?

    package init(_ text: String) {
        self.text = text
        let slash = UInt8(ascii: "/")
        guard text.utf8.first == slash else {
            name = nil
            return
        }
        let path = text.utf8.dropFirst()
        let first = Substring(path.prefix { $0 != slash && $0 != UInt8(ascii: "?") })
        name = first.isEmpty && path.first == slash ? nil : first
    }

    /// Whether the path is `path` or lies below it. Bytes are compared as sent.
    func isBelow(_ path: String) -> Bool {
        let (text, path) = (text.utf8, path.utf8)
        guard text.starts(with: path) else { return false }
        let next = text.dropFirst(path.count).first
        return next == nil || next == UInt8(ascii: "/") || next == UInt8(ascii: "?")
    }

    /// The segments of the path, including the name.
    var segments: [Substring] {
        text.utf8.prefix { $0 != UInt8(ascii: "?") }.dropFirst()
            .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map(Substring.init)
    }

    /// The bytes of the query without `v=…`, which only changes the URL for browsers and downstream caches. The value
    /// is nil if no other bytes remain.
    var query: [UInt8]? {
        guard let mark = text.utf8.firstIndex(of: UInt8(ascii: "?")) else { return nil }
        let parts = text.utf8[text.utf8.index(after: mark)...]
            .split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
            .filter { !$0.starts(with: "v=".utf8) }
        return parts.isEmpty ? nil : Array(parts.joined(separator: "&".utf8))
    }
}
