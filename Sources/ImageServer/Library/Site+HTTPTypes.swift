import HTTPCaching
public import HTTPTypes

extension Site {
    /// Answers a request that carries no body, for a server of any kind.
    ///
    /// - Parameters:
    ///   - request: its `path` is path and query as sent, below the mount point.
    ///   - client: the client's address, for `ServerConfiguration.rate`.
    public func respond(to request: HTTPRequest, client: String? = nil) async -> (HTTPResponse, AnswerBody) {
        await respond(to: request, body: NoBody(), client: client)
    }

    /// Answers a request, for a server of any kind. Whatever goes wrong is an answer too (RFC 9457).
    ///
    /// `Content-Length` is among the fields: what a GET carries, for HEAD too. Interim responses of origins are not passed
    /// on. Cancelling the task ends work that no other caller waits for.
    ///
    /// - Parameters:
    ///   - request: its `path` as the client sent it, percent-encoding and query included, `mountPoint` first.
    ///   - body: what the request carries; it is read only for routes that take a body, at most `bodyLimit` bytes of it.
    ///   - client: the client's address, for `ServerConfiguration.rate`.
    public func respond<Body: AsyncSequence & Sendable>(
        to request: HTTPRequest, body: Body, client: String? = nil
    ) async -> (HTTPResponse, AnswerBody) where Body.Element: Collection, Body.Element.Element == UInt8 {
        let isHead = request.method == .head
        let response: ServerResponse
        do throws(Problem) {
            var asked = try ServerRequest(request, mountPoint: settings.mountPoint)
            asked.client = client
            if wantsBody(of: asked) { asked.body = try await Self.bytes(of: body, limit: settings.bodyLimit) }
            response = await respond(to: asked)
        } catch {
            response = error.response(now: now())
        }
        return (HTTPResponse(response), AnswerBody(response, isHead: isHead))
    }

    /// Answers a request given in plain types, for servers that do not use swift-http-types.
    ///
    /// - Parameters:
    ///   - method: as sent, such as `GET`.
    ///   - path: path and query as the client sent them, `mountPoint` first.
    ///   - fields: names and values of the request's fields, `Host` included.
    ///   - body: what the request carries.
    ///   - client: the client's address, for `ServerConfiguration.rate`.
    /// - Returns: `Content-Length` is among the fields. Write the body piece by piece; its `count` is known.
    public func respond(
        method: String, path: String, fields: [(name: String, value: String)], body: [UInt8] = [],
        client: String? = nil
    ) async -> (status: Int, fields: [(name: String, value: String)], body: AnswerBody) {
        // A text that is not a token gets the 405 of a method that no path has.
        var request = HTTPRequest(
            method: HTTPRequest.Method(method) ?? .connect, scheme: nil, authority: nil, path: path)
        for (name, value) in fields {
            guard let name = HTTPField.Name(name) else { continue }
            if name.canonicalName == "host" {
                request.authority = value
            } else {
                request.headerFields.append(HTTPField(name: name, value: value))
            }
        }
        let pieces = AsyncStream { continuation in
            continuation.yield(body)
            continuation.finish()
        }
        let (head, answer) = await respond(to: request, body: pieces, client: client)
        return (head.status.code, head.headerFields.map { ($0.name.rawName, $0.value) }, answer)
    }

    private static func bytes<Body: AsyncSequence>(
        of body: Body, limit: Int
    ) async throws(Problem) -> [UInt8] where Body.Element: Collection, Body.Element.Element == UInt8 {
        var bytes: [UInt8] = []
        do {
            for try await piece in body {
                guard bytes.count + piece.count <= limit else {
                    throw Problem(.bodyTooLarge, "at most \(limit) bytes are read (`server.bodyBytes`)")
                }
                bytes += piece
            }
        } catch let problem as Problem {
            throw problem
        } catch {
            throw Problem(.malformedRequest, "its body ended early")
        }
        return bytes
    }
}

/// The body of a request without one.
private struct NoBody: AsyncSequence, AsyncIteratorProtocol {
    func makeAsyncIterator() -> NoBody { self }
    func next() async -> ArraySlice<UInt8>? { nil }
}

extension ServerRequest {
    /// The target below the mount point; nil outside it.
    static func below(_ mountPoint: String, _ target: String) -> String? {
        if mountPoint.isEmpty { return target }
        guard target.hasPrefix(mountPoint) else { return nil }
        let below = target.dropFirst(mountPoint.count)
        return below.hasPrefix("/") ? String(below) : nil
    }

    static func outside(_ mountPoint: String) -> Problem {
        Problem(.unknownPath, "images are below \(mountPoint)/")
    }

    /// Throws a 404 for a path outside the mount point, a 414 or a 400 for one that is no path.
    init(_ request: HTTPRequest, mountPoint: String) throws(Problem) {
        let path = request.path ?? ""
        guard path.utf8.count <= RequestAdmission.targetLimit + mountPoint.utf8.count else {
            throw Problem(
                .targetTooLong, "it has \(path.utf8.count) bytes, at most \(RequestAdmission.targetLimit) are taken")
        }
        guard let below = Self.below(mountPoint, path) else { throw Self.outside(mountPoint) }
        self.init(method: request.method.rawValue, target: try RequestAdmission.originForm(below))
        if let authority = request.authority { fields.append(HeaderField("Host", authority)) }
        for field in request.headerFields {
            // A text holds a byte beyond ASCII as the scalar of the same number (ISO-8859-1).
            let value =
                field.value.utf8.allSatisfy { $0 < 0x80 }
                ? field.value
                : field.withUnsafeBytesOfValue { String(String.UnicodeScalarView($0.map { UnicodeScalar($0) })) }
            fields.append(HeaderField(field.name.rawName, value))
        }
    }
}

extension HTTPResponse {
    init(_ response: ServerResponse) {
        self.init(status: Status(code: response.status))
        for field in response.fields {
            guard let name = HTTPField.Name(field.name) else { continue }
            var value: [UInt8] = []
            ServerResponse.append(field.value, to: &value)
            headerFields.append(HTTPField(name: name, lenientValue: value))
        }
        if response.mayHaveBody { headerFields[.contentLength] = String(response.length) }
    }
}
