import Glibc
import Synchronization

/// An origin that serves the files in a folder with validators, like a simple web server.
public final class FolderOrigin: Sendable {
    private let origin: LoopbackOrigin

    /// Starts serving.
    ///
    /// - Parameters:
    ///   - folder: The folder to serve. Symbolic links that lead out of the folder are not followed.
    ///   - port: The port. With 0, the default, the system chooses one.
    ///   - maxAge: The value of `Cache-Control: max-age` in seconds; nil to omit the field.
    ///   - log: Called for each response with `METHOD TARGET STATUS BODY-BYTES`, on the connection's thread.
    public init(
        folder: String, port: UInt16 = 0, maxAge: Int? = nil, log: (@Sendable (String) -> Void)? = nil
    ) throws(OriginError) {
        guard let root = Self.resolved(folder) else { throw OriginError("cannot serve \(folder)", errno) }
        origin = try LoopbackOrigin(port: port) { request in
            let answer = Self.answer(request, root: root, maxAge: maxAge)
            let sent = request.method == "HEAD" ? 0 : answer.body.count
            log?("\(request.method) \(request.target) \(answer.status) \(sent)")
            return .response(
                answer.status, answer.fields, body: answer.body, sendsBody: request.method != "HEAD")
        }
    }

    /// The port on which the origin listens.
    public var port: Int { origin.port }

    /// Returns the absolute URL of a path on this origin.
    public func url(_ path: String) -> String { origin.url(path) }

    /// The requests received so far.
    public var requests: [OriginRequest] { origin.requests }

    /// Closes every connection and waits for all threads.
    public func stop() { origin.stop() }

    private struct Response {
        var status: Int
        var fields: [(key: String, value: String)]
        var body: [UInt8] = []
    }

    private static func answer(_ request: OriginRequest, root: String, maxAge: Int?) -> Response {
        guard request.method == "GET" || request.method == "HEAD" else {
            return plain(405, "only GET and HEAD", [("Allow", "GET, HEAD")])
        }
        guard let relative = decoded(request.path), let path = resolved(root + relative),
            path.hasPrefix(root == "/" ? root : root + "/")
        else { return plain(404, "no such file") }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return plain(404, "no such file") }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return plain(404, "no such file")
        }
        let nanoseconds = status.st_mtim.tv_sec &* 1_000_000_000 &+ status.st_mtim.tv_nsec
        let tag = "\"\(String(nanoseconds, radix: 16))-\(String(status.st_size, radix: 16))\""
        let modified = OriginDate.text(status.st_mtim.tv_sec)
        var fields: [(key: String, value: String)] = [("ETag", tag), ("Last-Modified", modified)]
        if let maxAge { fields.append(("Cache-Control", "max-age=\(maxAge)")) }
        if isUnchanged(request, tag: tag, modified: modified) { return Response(status: 304, fields: fields) }
        guard let body = contents(descriptor, size: Int(status.st_size)) else { return plain(500, "cannot read it") }
        fields.append(("Content-Type", contentType(path)))
        return Response(status: 200, fields: fields, body: body)
    }

    /// Whether the request's conditions match. `If-None-Match` takes precedence if present (RFC 9110 §13.2.2). Dates
    /// are compared as strings, as sent.
    private static func isUnchanged(_ request: OriginRequest, tag: String, modified: String) -> Bool {
        if let wanted = request["if-none-match"] {
            return wanted.split(separator: ",").contains { member in
                let member = member.drop { $0 == " " }
                return member == "*" || (member.hasPrefix("W/") ? member.dropFirst(2) : member) == tag
            }
        }
        return request["if-modified-since"] == modified
    }

    private static func plain(
        _ status: Int, _ text: String, _ fields: [(key: String, value: String)] = []
    ) -> Response {
        Response(status: status, fields: [("Content-Type", "text/plain")] + fields, body: Array((text + "\n").utf8))
    }

    private static func contents(_ descriptor: Int32, size: Int) -> [UInt8]? {
        var isComplete = true
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            while count < size {
                let rest = UnsafeMutableBufferPointer(rebasing: buffer[count...])
                let got = read(descriptor, rest.baseAddress, rest.count)
                if got < 0, errno == EINTR { continue }
                guard got > 0 else {
                    isComplete = false
                    return
                }
                count += got
            }
        }
        return isComplete ? bytes : nil
    }

    private static func resolved(_ path: String) -> String? {
        guard let pointer = realpath(path, nil) else { return nil }
        defer { free(pointer) }
        return String(cString: pointer)
    }

    /// Returns the percent-decoded path, or nil if the encoding is malformed, the path contains a NUL, or the path does
    /// not begin with `/`.
    private static func decoded(_ path: String) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(path.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                return nil
            }
            rest = rest.dropFirst(2)
            bytes.append(value)
        }
        return bytes.contains(0) || bytes.first != UInt8(ascii: "/") ? nil : String(decoding: bytes, as: UTF8.self)
    }

    private static func contentType(_ path: String) -> String {
        let name = path.split(separator: "/").last ?? ""
        switch name.split(separator: ".").last?.lowercased() {
        case "jpg", "jpeg": return "image/jpeg"
        case "png": return "image/png"
        case "webp": return "image/webp"
        case "gif": return "image/gif"
        case "avif": return "image/avif"
        case "heic", "heif": return "image/heif"
        case "tif", "tiff": return "image/tiff"
        case "svg": return "image/svg+xml"
        case "jxl": return "image/jxl"
        case "html": return "text/html"
        case "txt", "csv": return "text/plain"
        case "json", "jsonl": return "application/json"
        default: return "application/octet-stream"
        }
    }
}
