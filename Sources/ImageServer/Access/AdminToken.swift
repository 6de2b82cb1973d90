import HTTPCaching
package import PipelineSupport

/// The operators' secret: the `adminToken` setting. Requests carry it as `Authorization: Bearer` (RFC 6750 §2.1).
package struct AdminToken: Sendable {
    /// The minimum length of a token, in bytes.
    static let minBytes = 16

    /// The token's digest. Digests are compared in constant time, regardless of the lengths of the tokens.
    private let digest: [UInt8]

    /// Checks and stores the token.
    ///
    /// - Throws: if the string is shorter than `minBytes`, contains characters other than visible ASCII, or begins
    ///   with `replace-this`, as the placeholders in the shipped files do. No message contains the string.
    package init(_ text: String) throws(InvalidSetting) {
        guard !text.hasPrefix("replace-this") else {
            throw InvalidSetting("is a placeholder from the documentation; create a secret with `openssl rand -hex 32`")
        }
        guard text.utf8.count >= Self.minBytes, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw InvalidSetting(
                "must have at least \(Self.minBytes) characters of visible ASCII without spaces; "
                    + "create one with `openssl rand -hex 32`")
        }
        digest = Self.digest(text)
    }

    private static func digest(_ text: String) -> [UInt8] { SHA256.digest(of: Array(text.utf8)) }

    /// Whether the request's header fields contain exactly one `Authorization` field, and that field carries the token.
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
                "to enable this, set `adminToken` (in the settings file, or PIPECTL_ADMIN_TOKEN) to a secret of at least \(minBytes) characters "
                    + "and restart the server")
        }
        guard token.isIn(fields) else {
            throw Problem(.unauthorized, "send `Authorization: Bearer TOKEN` with the `adminToken` of the server")
        }
    }
}
