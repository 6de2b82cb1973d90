import HTTPCaching

/// Recognises requests that this server made itself, by `CDN-Loop` (RFC 8586): an origin that redirects to this server
/// would have it wait for itself, and make ever more requests.
package struct LoopGuard: Sendable, Hashable {
    /// What requests to origins append to the field. The number is this process's own, so that servers may be in a row.
    package let entry: String

    private static let name = "image-pipeline"
    /// The most servers of this kind in a row. Those of one site that have different numbers, behind a balancer, may form
    /// a loop too.
    private static let limit = 8

    package init() {
        let digits = String(UInt64.random(in: 0...(.max)), radix: 16)
        entry = Self.name + ";id=" + String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// - Throws: `loopDetected` for a request that has been here, or in too many servers like this one.
    func check(_ fields: [HeaderField]) throws(Problem) {
        let entries = fields.values(of: "cdn-loop").flatMap { line in
            line.split(separator: ",").map { part in part.filter { $0 != " " } }
        }
        guard !entries.contains(entry), entries.count(where: { $0.hasPrefix(Self.name) }) < Self.limit else {
            throw Problem(.loopDetected, "the source leads back to this server")
        }
    }

    /// The client's entries, which go to the origin before this server's.
    static func passedOn(_ fields: [HeaderField]) -> [HeaderField] {
        fields.filter { FieldLines.isSameName($0.name, "cdn-loop") }
    }
}
