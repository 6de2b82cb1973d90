import HTTPCaching
import PipelineSupport

/// The secret in the address that `pipectl serve FOLDER` prints. It keeps other accounts on this machine from reading
/// the folder.
///
/// A request carries the token as `?token=`, as `Authorization: Bearer` or in a cookie. A browser receives the cookie
/// in return for `?token=`.
package struct AccessToken: Sendable {
    /// 128 bits from the system's random number generator, as hexadecimal digits.
    package let text: String
    private let digest: [UInt8]

    package init() {
        text = hex((0..<16).map { _ in .random(in: .min ... .max) })
        digest = SHA256.digest(of: Array(text.utf8))
    }

    /// Whether `text` is the token. Compares digests in constant time, regardless of the lengths.
    func matches(_ text: some StringProtocol) -> Bool {
        areEqualInConstantTime(SHA256.digest(of: Array(text.utf8)), digest)
    }

    /// Whether a header field is a `Cookie` or `Authorization` field that contains the token.
    func isCarried(by field: HeaderField) -> Bool {
        if FieldLines.isSameName("authorization", field.name) { return matches(field.value.dropFirst("Bearer ".count)) }
        guard FieldLines.isSameName("cookie", field.name) else { return false }
        return field.value.split(separator: ";").contains { pair in
            pair.firstIndex(of: "=").map { matches(pair[pair.index(after: $0)...]) } == true
        }
    }

    /// Splits a request target into the target without `token=…` and the token. Returns nil if the query has no token.
    package static func split(_ target: String) -> (target: String, token: String)? {
        guard let mark = target.firstIndex(of: "?") else { return nil }
        var parts = target[target.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
        guard let index = parts.firstIndex(where: { $0.hasPrefix("token=") }) else { return nil }
        let token = String(parts.remove(at: index).dropFirst("token=".count))
        return (String(target[..<mark]) + (parts.isEmpty ? "" : "?") + parts.joined(separator: "&"), token)
    }

    /// Returns a redirect to `path` that sets the token's cookie.
    func redirect(to path: String, _ request: ServerRequest, now: Double) -> ServerResponse {
        let port = request.combined("host")?.split(separator: ":").last.map { String($0.filter(\.isNumber)) } ?? ""
        return ServerResponse(
            status: 303,
            fields: ServerResponse.ownFields("text/plain", now: now) + [
                HeaderField("Location", path), HeaderField("Referrer-Policy", "no-referrer"),
                HeaderField("Set-Cookie", "pipectl-\(port)=\(text); Path=/; HttpOnly; SameSite=Strict"),
            ])
    }
}
