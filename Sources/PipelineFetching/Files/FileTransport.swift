import HTTPCaching
package import PipelineSupport

/// Serves files as an origin would. Each response has `no-cache` and a strong entity tag, which changes whenever the
/// file may have changed. The body is the open file.
package struct FileTransport: Transport {
    private let byteLimit: Int
    private let threads: OwnedThreads
    /// The folder that contains the files, or nil if URLs contain absolute paths.
    package var folder: OpenFolder?
    /// The folders that must contain all files with absolute paths. If nil, files may be anywhere.
    package var bounds: [OpenFolder]?

    package var isLocal: Bool { true }

    /// - Parameter threads: the threads that open files, because opening a file blocks.
    package init(byteLimit: Int, threads: OwnedThreads) {
        self.byteLimit = byteLimit
        self.threads = threads
    }

    package func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        try await threads.result { () throws(FetchError) in try answer(request) }
    }

    /// Returns the response directly. Blocks.
    package func answer(_ request: FetchRequest) throws(FetchError) -> FetchedResponse {
        let file: LocalFile
        do throws(LocalFile.Failure) { file = try open(request.url.path, request.maxBytes ?? byteLimit) } catch {
            throw FetchError(error)
        }
        // The device and inode of a file in a folder are not disclosed to clients.
        let tag = "\"" + (folder == nil ? file.identity : String(sha256Hex(file.identity).prefix(32))) + "\""
        let isKnown = request.fields.first("if-none-match") == tag
        var response = FetchedResponse(
            to: request, status: isKnown ? 304 : 200,
            fields: [
                HeaderField("ETag", tag),
                HeaderField("Cache-Control", folder == nil ? "no-cache" : "no-cache, max-age=0"),
            ])
        if folder != nil {
            // If `Last-Modified` were the only such field, caches would estimate a lifetime. The date must not be in
            // the future (RFC 9110 §8.8.2.1).
            let modified = max(0, min(file.modified, Int(response.responseTime)))
            response.fields.append(HeaderField("Last-Modified", HTTPDate.text(unixSeconds: modified)))
        }
        if !isKnown { response.file = file.body }
        return response
    }

    private func open(_ path: String, _ limit: Int) throws(LocalFile.Failure) -> LocalFile {
        if let folder { return try folder.file(path, byteLimit: limit) }
        if let bounds { return try OpenFolder.file(path, below: bounds, byteLimit: limit) }
        return try LocalFile.open(path, byteLimit: limit)
    }

    package func shutdown() async {}
}

/// Serves bytes that came with the request.
package struct BytesTransport: Transport {
    private let bytes: [UInt8]
    /// The SHA-256 of the bytes in hexadecimal.
    package let digest: String

    package var isLocal: Bool { true }

    package init(_ bytes: [UInt8], digest: String) {
        self.bytes = bytes
        self.digest = digest
    }

    package func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        var response = FetchedResponse(to: request, body: bytes)
        response.digest = digest
        return response
    }

    package func shutdown() async {}
}

extension FetchError {
    fileprivate init(_ failure: LocalFile.Failure) {
        self.init(failure.isMissing ? .missing : failure.isTooLarge ? .tooLarge : .transport, failure.message)
        logged = failure.logged
    }
}
