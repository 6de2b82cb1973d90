package import HTTPCaching

/// What is decided about a request from its head alone, before its target is looked at.
package struct RequestAdmission: Sendable, Hashable {
    /// The request in origin form.
    package var request: ServerRequest
    /// Whether another request may follow on the connection.
    package var keepsAlive: Bool
    /// Whether the client needs to be told so: HTTP/1.0.
    package var announcesKeepAlive: Bool
    /// Whether the client knows interim responses: not in HTTP/1.0 (RFC 9110 §15.2).
    package var takesInterim: Bool
    /// Whether a body follows that is to be read, and thrown away, before the answer.
    package var readsBody: Bool
    /// Whether a body may follow that is not read: the client waits for leave to send it (RFC 9110 §10.1.1).
    package var leavesBody: Bool
    /// `HTTP/1.1`.
    package let version: String
    private var mayKeepAlive: Bool

    /// The longest target taken, in bytes: as long as the longest source (RFC 9110 §4.1 asks for at least 8,000).
    package static let targetLimit = 8192

    /// Checks a head that has been parsed.
    ///
    /// - Parameters:
    ///   - target: as sent: origin form, or absolute form, whose authority is left out (RFC 9112 §3.2).
    ///   - version: major and minor.
    ///   - fields: all lines in order.
    ///   - bodyLimit: bytes of the longest body that is read.
    /// - Throws: 400 for a missing, repeated or malformed `Host` in HTTP/1.1 (RFC 9112 §3.2) and for other targets, 413
    ///   for a body that is too large, 414 for a target that is.
    package init(
        method: String, target: String, version: (major: Int, minor: Int), fields: [HeaderField], bodyLimit: Int
    ) throws(Problem) {
        guard target.utf8.count <= Self.targetLimit else {
            throw Problem(.targetTooLong, "it has \(target.utf8.count) bytes, at most \(Self.targetLimit) are taken")
        }
        self.version = "HTTP/\(version.major).\(version.minor)"
        let isOld = version == (1, 0)
        let hosts = fields.values(of: "host")
        guard hosts.count <= 1, isOld || hosts.count == 1, hosts.allSatisfy(Self.isHost) else {
            throw Problem(.malformedRequest, "exactly one valid `Host` field is expected")
        }
        request = ServerRequest(method: method, target: try Self.originForm(target), fields: fields)
        let connection = fields.values(of: "connection").flatMap { $0.split(separator: ",") }
            .map { $0.trimmingSpace().lowercased() }
        let asksToKeep = isOld ? connection.contains("keep-alive") : true
        let coding = fields.values(of: "transfer-encoding")
        guard coding.isEmpty || coding.map({ $0.lowercased() }) == ["chunked"] else {
            // What else was done to the body would be forgotten on the way to an origin (RFC 9112 §6.1).
            throw Problem(.unknownCoding, "bodies come as they are, or `chunked`")
        }
        let length = fields.values(of: "content-length").first.map { Int($0) ?? .max } ?? 0
        guard length <= bodyLimit else {
            throw Problem(
                .bodyTooLarge,
                "a body of \(length) bytes is announced, at most \(bodyLimit) are read (`server.bodyBytes`)")
        }
        let hasBody = length > 0 || !coding.isEmpty
        // A client that waits for "100 Continue" gets the final answer instead and sends no body (RFC 9110 §10.1.1);
        // the server cannot know whether it sends one after all, so nothing may follow.
        let waits = hasBody && !isOld && !fields.values(of: "expect").isEmpty
        // After a request for a tunnel or an upgrade the parser takes what follows for the other protocol; HTTP/1.0 has no chunks.
        let isOdd = method == "CONNECT" || !fields.values(of: "upgrade").isEmpty || (isOld && !coding.isEmpty)
        mayKeepAlive = asksToKeep && !connection.contains("close") && !isOdd
        keepsAlive = mayKeepAlive && !waits
        announcesKeepAlive = keepsAlive && isOld
        takesInterim = !isOld
        readsBody = hasBody && !waits
        leavesBody = waits
    }

    /// Has the body sent that the client holds back; the client is to be told so.
    package mutating func takeBody() {
        readsBody = true
        leavesBody = false
        keepsAlive = mayKeepAlive
    }

    /// `uri-host [":" port]` as far as its characters go (RFC 3986 §3.2.2); empty is permitted.
    static func isHost(_ text: String) -> Bool {
        text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "-._~!$&'()*+;=:%[]".utf8.contains(byte)
            }
        }
    }

    /// The path and query of a target in origin form or absolute form; throws a 400 for others.
    static func originForm(_ target: String) throws(Problem) -> String {
        // Visible ASCII only, and a fragment never goes over the wire (RFC 3986 §2, §3.5).
        guard target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else {
            throw Problem(.malformedRequest, "the path holds characters that must be percent-encoded")
        }
        if target.hasPrefix("/") { return target }
        let lowered = target.prefix(8).lowercased()
        for scheme in ["http://", "https://"] where lowered.hasPrefix(scheme) {
            let rest = target.dropFirst(scheme.utf8.count)
            let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
            guard end != rest.startIndex else { break }
            return rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
        }
        throw Problem(.malformedRequest, "the target is neither a path nor an absolute http(s) URL")
    }
}

extension StringProtocol {
    /// Without the spaces and tabs at both ends (`OWS`, RFC 9110 §5.6.3).
    @inlinable package func trimmingSpace() -> String {
        guard utf8.contains(where: { $0 == 0x20 || $0 == 0x09 }) else { return String(self) }
        var bytes = Array(utf8)[...]
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
