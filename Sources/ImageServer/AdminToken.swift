import HTTPCaching
import PipelineSupport

/// The secret by which an operator proves to be one: the setting `adminToken`. Requests carry it as
/// `Authorization: Bearer` (RFC 6750 §2.1).
package struct AdminToken: Sendable {
    /// Bytes of the shortest token that is accepted.
    package static let leastBytes = 16

    /// Compared in place of the token: two digests compare in constant time, whatever the lengths.
    private let digest: [UInt8]

    /// Whether a text stands in a shipped file, where everybody can read it.
    package static func isPlaceholder(_ text: String) -> Bool { text.hasPrefix("replace-this") }

    /// nil if it is a placeholder or shorter than `leastBytes`, or holds what a field's value cannot: visible ASCII only.
    package init?(_ text: String) {
        guard !Self.isPlaceholder(text), text.utf8.count >= Self.leastBytes,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        digest = Self.digest(text)
    }

    private static func digest(_ text: String) -> [UInt8] { SHA256.digest(of: Array(text.utf8)) }

    /// Whether a request carries it, in a single field.
    func isIn(_ fields: [HeaderField]) -> Bool {
        let values = fields.values(of: "authorization")
        guard values.count == 1, let space = values[0].firstIndex(of: " "),
            FieldLines.isSameName(String(values[0][..<space]), "Bearer")
        else { return false }
        return areEqualInConstantTime(Self.digest(values[0][space...].trimmingSpace()), digest)
    }

    /// Throws a 403 if the server has no token, and a 401 if the request does not carry it.
    static func check(_ token: AdminToken?, _ fields: [HeaderField]) throws(Problem) {
        guard let token else {
            throw Problem(
                .adminOff,
                "set `adminToken` (in the settings file, or PIPECTL_ADMIN_TOKEN) to at least \(leastBytes) characters "
                    + "and start the server again")
        }
        guard token.isIn(fields) else {
            throw Problem(.unauthorized, "send `Authorization: Bearer` and the server's `adminToken`")
        }
    }
}
