import HTTPCaching
package import PipelineSupport

/// Answers for files as an origin would: with a strong entity tag that changes whenever the file may have changed, and
/// `no-cache`. The body is the open file.
package struct FileTransport: Transport {
    private let byteLimit: Int
    private let threads: OwnedThreads
    /// The folder that URLs name files of; nil if they have absolute paths.
    package var folder: OpenFolder?
    /// The folders that files with absolute paths have to lie below; nil for all of them.
    package var bounds: [OpenFolder]?

    package var isLocal: Bool { true }

    /// - Parameter threads: for opening files, which blocks.
    package init(byteLimit: Int, threads: OwnedThreads) {
        self.byteLimit = byteLimit
        self.threads = threads
    }

    package func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        let (path, limit, folder, bounds) = (request.url.path, request.byteLimit ?? byteLimit, folder, bounds)
        let opened = await threads.run {
            Result { () throws(LocalFile.Failure) in
                if let folder { return try folder.file(path, byteLimit: limit) }
                if let bounds { return try OpenFolder.file(path, below: bounds, byteLimit: limit) }
                return try LocalFile.open(path, byteLimit: limit)
            }
        }
        let file: LocalFile
        do throws(LocalFile.Failure) { file = try opened.get() } catch { throw FetchError(error) }
        // Clients of a folder's files do not learn device and inode.
        let tag = "\"" + (folder == nil ? file.identity : String(sha256Hex(file.identity).prefix(32))) + "\""
        let isKnown = request.fields.first("if-none-match") == tag
        var response = FetchedResponse(
            to: request, status: isKnown ? 304 : 200,
            fields: [
                HeaderField("ETag", tag),
                HeaderField("Cache-Control", folder == nil ? "no-cache" : "no-cache, max-age=0"),
            ])
        if folder != nil {
            // With `Last-Modified` alone a lifetime would be estimated. Not of the future (RFC 9110 §8.8.2.1).
            let modified = max(0, min(file.modified, Int(response.responseTime)))
            response.fields.append(HeaderField("Last-Modified", HTTPDate.text(unixSeconds: modified)))
        }
        if !isKnown { response.file = file.body }
        return response
    }

    package func shutdown() async {}
}

/// Answers with bytes that came with the request.
package struct BytesTransport: Transport {
    private let bytes: [UInt8]
    /// SHA-256 of the bytes, hexadecimal.
    package let digest: String

    package var isLocal: Bool { true }
    package var keepsRecords: Bool { false }

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
