import HTTPCaching
public import HTTPTypes

extension Site {
    /// Responds to a request without a body, for any HTTP server.
    ///
    /// - Parameters:
    ///   - request: The request. Its `path` is the path and query as sent, beginning with `mountPoint`.
    ///   - client: The client's address, for `ServerConfiguration.rate`.
    public func respond(to request: HTTPRequest, client: String? = nil) async -> (HTTPResponse, AnswerBody) {
        await respond(to: request, body: NoBody(), client: client)
    }

    /// Responds to a request, for any HTTP server. Errors also become responses (RFC 9457).
    ///
    /// The response includes `Content-Length`, which is the length of a GET's body even for HEAD. Interim responses of
    /// origins are not forwarded. Cancelling the task cancels work that no other caller is waiting for.
    ///
    /// - Parameters:
    ///   - request: The request. Its `path` is the path and query as the client sent them, still percent-encoded,
    ///     beginning with `mountPoint`.
    ///   - body: The request body. At most `maxBodyBytes` of it are read, or `RenderLimits.bytes` of an upload, and only
    ///     for routes that accept a body.
    ///   - client: The client's address, for `ServerConfiguration.rate`.
    public func respond<Body: AsyncSequence & Sendable>(
        to request: HTTPRequest, body: Body, client: String? = nil
    ) async -> (HTTPResponse, AnswerBody) where Body.Element: Collection, Body.Element.Element == UInt8 {
        let isHead = request.method == .head
        let response: ServerResponse
        do throws(Problem) {
            var asked = try ServerRequest(request, target: relativeTarget(request.path ?? ""))
            asked.client = client
            let intake = intake(of: asked)
            asked.intake = intake
            switch intake {
            case .unneeded, .refused: break
            case .wanted:
                asked.body = try await Self.bytes(of: body) { [limit = settings.maxBodyBytes] count throws(Problem) in
                    guard count <= limit else { throw Self.bodyTooLarge(limit) }
                }
            case .upload(let permit):
                do throws(Problem) { asked.body = try await Self.bytes(of: body, permit.reserve) } catch {
                    asked.intake = .refused(error)
                }
            }
            response = await respond(to: asked)
        } catch {
            response = error.response(now: now())
        }
        return (HTTPResponse(response), AnswerBody(response, isHead: isHead))
    }

    /// Responds to a request given in standard library types, for servers that do not use swift-http-types.
    ///
    /// - Parameters:
    ///   - method: The method as sent, for example `GET`.
    ///   - path: The path and query as the client sent them, beginning with `mountPoint`.
    ///   - fields: Names and values of the request's header fields, including `Host`.
    ///   - body: The request body.
    ///   - client: The client's address, for `ServerConfiguration.rate`.
    /// - Returns: The status, header fields and body. The fields include `Content-Length`. Write the body chunk by
    ///   chunk.
    public func respond(
        method: String, path: String, fields: [(name: String, value: String)], body: [UInt8] = [],
        client: String? = nil
    ) async -> (status: Int, fields: [(name: String, value: String)], body: AnswerBody) {
        // A method that is not a token gets a 405, like a method that no path supports.
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

    /// Returns the problem of a body that is not an upload and exceeds a limit, in bytes.
    package static func bodyTooLarge(_ limit: Int) -> Problem {
        Problem(.bodyTooLarge, "the body exceeds the maximum of \(limit) bytes (`server.bodyBytes`)")
    }

    private static func bytes<Body: AsyncSequence>(
        of body: Body, _ check: (_ count: Int) throws(Problem) -> Void
    ) async throws(Problem) -> [UInt8] where Body.Element: Collection, Body.Element.Element == UInt8 {
        var bytes: [UInt8] = []
        do {
            for try await piece in body {
                try check(bytes.count + piece.count)
                bytes += piece
            }
        } catch let problem as Problem {
            throw problem
        } catch {
            throw Problem(.malformedRequest, "the body ended before it was complete")
        }
        return bytes
    }
}

/// An empty request body.
private struct NoBody: AsyncSequence, AsyncIteratorProtocol {
    func makeAsyncIterator() -> NoBody { self }
    func next() async -> ArraySlice<UInt8>? { nil }
}

extension ServerRequest {
    /// Returns a target relative to the mount point, or nil if the target is outside of it.
    static func relativeTarget(_ mountPoint: String, _ target: String) -> String? {
        if mountPoint.isEmpty { return target }
        guard target.hasPrefix(mountPoint) else { return nil }
        let below = target.dropFirst(mountPoint.count)
        return below.hasPrefix("/") ? String(below) : nil
    }

    /// - Parameter target: Path and query, relative to the mount point.
    /// - a `Problem` with status 414 if the target is too long, or 400 if it is not a path or a header field is not
    ///   UTF-8.
    init(_ request: HTTPRequest, target: String) throws(Problem) {
        try RequestAdmission.checkLength(of: target)
        self.init(method: request.method.rawValue, target: try RequestAdmission.originForm(target))
        isSecure = request.scheme == "https"
        if let authority = request.authority { fields.append(HeaderField("Host", authority)) }
        for field in request.headerFields {
            fields.append(try HeaderField(field.name.rawName, decoded: field.value))
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
