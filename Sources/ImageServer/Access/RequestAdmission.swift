package import HTTPCaching
import PipelineSupport

/// The decisions about a request that follow from its headers, independent of the path.
package struct RequestAdmission: Sendable, Hashable {
    /// The request in origin form.
    package var request: ServerRequest
    /// Whether another request may follow on the connection.
    package var keepsAlive: Bool
    /// Whether the response must contain `Connection: keep-alive`, which HTTP/1.0 clients require.
    package var announcesKeepAlive: Bool
    /// Whether the client supports interim responses. HTTP/1.0 clients do not (RFC 9110 §15.2).
    package var takesInterim: Bool
    /// Whether a body follows that must be read and discarded before the response is sent.
    package var readsBody: Bool
    /// Whether a body may follow that the server does not read, because the client is waiting for a 100 response (RFC
    /// 9110 §10.1.1).
    package var leavesBody: Bool
    /// The HTTP version, for example `HTTP/1.1`.
    package let version: String
    private var mayKeepAlive: Bool

    /// The maximum length of a request target, in bytes. It equals the maximum length of a source. RFC 9110 §4.1
    /// recommends at least 8,000.
    package static let targetLimit = 8192

    /// Checks the parsed headers of a request.
    ///
    /// - Parameters:
    ///   - target: The request target as sent, in origin form or absolute form. The authority in the absolute form is
    ///     ignored (RFC 9112 §3.2).
    ///   - version: The major and minor version of HTTP.
    ///   - fields: All field lines, in order.
    ///   - bodyLimit: The maximum length of a body that is read, in bytes.
    ///   - isUpload: Whether the limit does not apply to a request.
    /// - Throws: a `Problem` with status 400 if `Host` is missing in HTTP/1.1, repeated or malformed (RFC 9112 §3.2),
    ///   or if the target has a different form. The status is 413 if the body is too large, and 414 if the target is
    ///   too long.
    package init(
        method: String, target: String, version: (major: Int, minor: Int), fields: [HeaderField], bodyLimit: Int,
        isUpload: (ServerRequest) -> Bool = { _ in false }
    ) throws(Problem) {
        try Self.checkLength(of: target)
        self.version = "HTTP/\(version.major).\(version.minor)"
        let isOld = version == (1, 0)
        let hosts = fields.values(of: "host")
        guard hosts.count <= 1, isOld || hosts.count == 1, hosts.allSatisfy(Self.isHost) else {
            throw Problem(.malformedRequest, "the request must have exactly one valid `Host` field")
        }
        request = ServerRequest(method: method, target: try Self.originForm(target), fields: fields)
        let connection = fields.values(of: "connection").flatMap { $0.split(separator: ",") }
            .map { $0.trimmingSpace().lowercased() }
        let asksToKeep = isOld ? connection.contains("keep-alive") : true
        let coding = fields.values(of: "transfer-encoding")
        guard coding.isEmpty || coding.map({ $0.lowercased() }) == ["chunked"] else {
            // Other transfer codings would be lost when the request is forwarded to an origin (RFC 9112 §6.1).
            throw Problem(.unknownCoding, "send the body with the transfer coding `chunked`, or with none")
        }
        let length = fields.values(of: "content-length").first.map { Int($0) ?? .max } ?? 0
        guard length <= bodyLimit || isUpload(request) else {
            throw Problem(
                .bodyTooLarge,
                "the body has \(length) bytes; the maximum is \(bodyLimit) (`server.bodyBytes`)")
        }
        let hasBody = length > 0 || !coding.isEmpty
        // A client that waits for "100 Continue" gets the final response instead and sends no body (RFC 9110 §10.1.1).
        // The server cannot tell whether the client sends the body anyway, so it must close the connection.
        let waits = hasBody && !isOld && !fields.values(of: "expect").isEmpty
        // After a request for a tunnel or an upgrade, the parser treats the following bytes as the other protocol.
        // HTTP/1.0 has no chunked coding.
        let isOdd = method == "CONNECT" || !fields.values(of: "upgrade").isEmpty || (isOld && !coding.isEmpty)
        mayKeepAlive = asksToKeep && !connection.contains("close") && !isOdd
        keepsAlive = mayKeepAlive && !waits
        announcesKeepAlive = keepsAlive && isOld
        takesInterim = !isOld
        readsBody = hasBody && !waits
        leavesBody = waits
    }

    /// Accepts a body that the client holds back (`Expect: 100-continue`). The caller must send a 100 response.
    package mutating func takeBody() {
        readsBody = true
        leavesBody = false
        keepsAlive = mayKeepAlive
    }

    /// Refuses the body. The response is sent without reading it.
    package mutating func refuseBody(_ problem: Problem) {
        (request.body, request.intake) = ([], .refused(problem))
        (readsBody, leavesBody, keepsAlive, announcesKeepAlive) = (false, true, false, false)
    }

    /// Throws a 414 if the target is longer than `targetLimit`.
    static func checkLength(of target: String) throws(Problem) {
        guard target.utf8.count <= targetLimit else {
            throw Problem(
                .targetTooLong, "the request target has \(target.utf8.count) bytes; the maximum is \(targetLimit)")
        }
    }

    /// Whether all characters may occur in `uri-host [":" port]` (RFC 3986 §3.2.2). An empty string is valid.
    static func isHost(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0.isLetterOrDigit || "-._~!$&'()*+;=:%[]".utf8.contains($0) }
    }

    /// Returns the path and query of a target in origin form or absolute form. Throws a 400 if the target has a
    /// different form.
    static func originForm(_ target: String) throws(Problem) -> String {
        // A target consists of visible ASCII characters, and a fragment is never sent (RFC 3986 §2, §3.5).
        guard target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else {
            throw Problem(
                .malformedRequest, "the path contains characters that must be percent-encoded, such as spaces")
        }
        if target.hasPrefix("/") { return target }
        let lowered = target.prefix(8).lowercased()
        for scheme in ["http://", "https://"] where lowered.hasPrefix(scheme) {
            let rest = target.dropFirst(scheme.utf8.count)
            let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
            guard end != rest.startIndex else { break }
            return rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
        }
        throw Problem(.malformedRequest, "the request target must be a path or an absolute http(s) URL")
    }
}

extension HeaderField {
    /// Creates a request header field without whitespace around its value. A byte outside ASCII becomes the Unicode
    /// scalar with the same number (ISO-8859-1), so origins and logs receive the bytes that the client sent (RFC 9110
    /// §5.5).
    ///
    /// - Parameter value: The value, decoded as UTF-8.
    /// - Throws: a `Problem` with status 400 if the value was not valid UTF-8 and bytes were lost.
    package init(_ name: String, decoded value: String) throws(Problem) {
        let value = value.trimmingSpace()
        guard !value.utf8.allSatisfy({ $0 < 0x80 }) else {
            self.init(name, value)
            return
        }
        guard !value.unicodeScalars.contains("\u{FFFD}") else {
            throw Problem(.malformedRequest, "the value of the field `\(name)` is not valid UTF-8")
        }
        self.init(name, String(String.UnicodeScalarView(value.utf8.map { UnicodeScalar($0) })))
    }
}

extension StringProtocol {
    /// Returns the string without spaces and tabs at both ends (`OWS`, RFC 9110 §5.6.3).
    @inlinable package func trimmingSpace() -> String {
        guard utf8.contains(where: { $0 == 0x20 || $0 == 0x09 }) else { return String(self) }
        var bytes = Array(utf8)[...]
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
