import HTTPCaching
import Pipeline
import PipelineSupport
import Variants

extension Site {
    /// Responds to requests for the page at `/` and for the files and data that it loads.
    func page(_ route: PageRoute, _ request: ServerRequest) async throws(Problem) -> ServerResponse {
        guard settings.playground else { throw Operation.nothing }
        let answer: ServerResponse
        switch route {
        case .document:
            guard let file = PageFile.named("index.html") else { throw Operation.nothing }
            answer = pageAnswer(file, control: "no-cache")
        case .file(let name):
            guard let file = PageFile.named(name), name != "index.html" else { throw Operation.nothing }
            answer = pageAnswer(file, control: "public, max-age=31536000, immutable")
        case .sample(let name):
            guard let sample = PageSample.all.first(where: { $0.file == name }) else { throw Operation.nothing }
            answer = pageAnswer(
                sample.bytes, type: sample.type, tag: sample.digest, control: "public, max-age=3600")
        case .catalog:
            let text = await catalogText(showsFolders: seesAll(request))
            answer = pageAnswer(
                Array(text.utf8), type: "application/json", tag: sha256Hex(text), control: "no-cache")
        case .cache:
            try admitOperator(request)
            answer = pageAnswer(
                Array(await cacheText().utf8), type: "application/json", tag: nil, control: "no-store")
        case .folder:
            try admitOperator(request)
            answer = pageAnswer(
                Array(try await folderText(request.target).utf8), type: "application/json", tag: nil,
                control: "no-store")
        case .urls:
            try admitOperator(request)
            answer = pageAnswer(
                Array(urlsText(request).utf8), type: "application/json", tag: nil, control: "no-store")
        case .variant(let key, let original):
            try admitOperator(request)
            guard let (entry, body) = await pipeline.storedVariant(key, of: original) else {
                throw Problem(.unknownPath, "the variant is no longer stored")
            }
            answer = pageAnswer(body, type: entry.mediaType, tag: entry.digest, control: "no-store")
        }
        return ConditionalAnswer.response(
            answer, to: request.fields, isHead: request.isHead, isOrigin: true, now: now())
    }

    private func pageAnswer(_ file: PageFile, control: String) -> ServerResponse {
        pageAnswer(file.bytes, type: file.type, tag: file.tag, control: control)
    }

    /// - Parameter tag: The value of `ETag`, without quotes, or nil to omit the field.
    private func pageAnswer(_ body: [UInt8], type: String, tag: String?, control: String) -> ServerResponse {
        var fields = [
            HeaderField("Content-Type", type), HeaderField("Cache-Control", control),
            HeaderField("X-Content-Type-Options", "nosniff"),
            HeaderField("Content-Security-Policy", Self.pagePolicy), HeaderField("Referrer-Policy", "same-origin"),
            HeaderField("Cross-Origin-Resource-Policy", "same-origin"), .date(now()),
        ]
        if let tag { fields.append(HeaderField("ETag", "\"\(tag)\"")) }
        return ServerResponse(status: 200, fields: fields, body: body, note: "page")
    }

    /// Allows only the server's own files, and pictures that the page has fetched from the server (`blob:`).
    private static let pagePolicy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    /// Whether the request carries the admin token, arrived at the operators' address, or comes from this machine with
    /// a loopback `Host`.
    private func seesAll(_ request: ServerRequest) -> Bool {
        rules.adminToken?.isIn(request.fields) == true
            || request.isAdministrative && !settings.signature.servesThisMachine
            || isOnThisMachine(request) && request.isForThisMachine
    }

    private func admitOperator(_ request: ServerRequest) throws(Problem) {
        guard seesAll(request) else {
            throw Problem(
                .forbidden,
                "this view is available to clients on this machine that use `localhost` or 127.0.0.1 as the host, "
                    + "at the `server.adminListen` address, or with the admin token")
        }
    }
}
