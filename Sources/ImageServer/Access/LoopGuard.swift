import HTTPCaching

/// Detects requests that this server sent itself, by their `CDN-Loop` field (RFC 8586). If an origin redirects to this
/// server, the server would otherwise wait for itself and send an unlimited number of requests.
package struct LoopGuard: Sendable, Hashable {
    /// The entry appended to `CDN-Loop` in requests to origins. The entry contains a number that identifies this
    /// process, so several servers can form a chain.
    package let entry: String

    private static let name = "image-pipeline"
    /// The maximum number of Image Pipeline servers in a chain. Servers of one site behind a load balancer have
    /// different numbers and can also form a loop.
    private static let limit = 8

    package init() {
        let digits = String(UInt64.random(in: 0...(.max)), radix: 16)
        entry = Self.name + ";id=" + String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// - Throws: `loopDetected` if the request has already passed through this server or through too many Image
    ///   Pipeline servers.
    func check(_ fields: [HeaderField]) throws(Problem) {
        let entries = fields.values(of: "cdn-loop").flatMap { line in
            line.split(separator: ",").map { part in part.filter { $0 != " " } }
        }
        guard !entries.contains(entry), entries.count(where: { $0.hasPrefix(Self.name) }) < Self.limit else {
            throw Problem(
                .loopDetected,
                "the source leads back to this server, which would cause a loop; use a source on a different server")
        }
    }

    /// Returns the client's `CDN-Loop` fields. They precede this server's entry in requests to the origin.
    static func passedOn(_ fields: [HeaderField]) -> [HeaderField] {
        fields.filter { FieldLines.isSameName($0.name, "cdn-loop") }
    }
}
