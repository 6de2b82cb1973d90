import HTTPCaching
package import PipelineSupport

/// Provides originals from a program's own storage, such as rows of a database or encrypted files.
///
/// ```swift
/// struct Photos: OriginalProvider {
///     func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
///         path == "1" ? .file("/srv/photos/1.jpg", maxAge: .seconds(60)) : .missing
///     }
/// }
/// var configuration = PipelineConfiguration()
/// configuration.providers["photos"] = Photos()  // `photos:1` is now a source.
/// ```
///
/// The pipeline calls a provider for sources named `NAME:PATH`, and treats the result like an origin's response: it is
/// stored, shared by all requests for the source, fresh for `maxAge`, and revalidated by version.
///
/// Calls can come from any task. The pipeline cancels a call once no request is waiting for the original. The number of
/// concurrent calls is limited like transfers (`fetch.maxConcurrentTransfers`, 16 by default), and the most urgent
/// request is next. A call that ignores its cancellation counts until it returns, or for `fetch.totalTimeout`.
public protocol OriginalProvider: Sendable {
    /// Returns the original for a path. The path is the text after `NAME:` or `NAME://` (which are equivalent), exactly
    /// as in the request.
    ///
    /// - Parameter version: the version of the stored original, if any. Return `.unchanged` if that version is still
    ///   current.
    /// - Throws: any error. The request fails with `fetchFailed` and this error as its cause, unless a stale original
    ///   may be used.
    func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal
}

/// The result of `OriginalProvider.original(_:unless:)`: bytes, a file, `.unchanged` or `.missing`.
///
/// ```swift
/// func photo(_ bytes: [UInt8], revision: Int, unless version: String?) -> ProvidedOriginal {
///     version == "\(revision)" ? .unchanged : .bytes(bytes, version: "\(revision)", maxAge: .seconds(60))
/// }
/// ```
public struct ProvidedOriginal: Sendable {
    enum Content: Sendable {
        case unchanged, missing
        case bytes([UInt8])
        case file(String)
    }

    let content: Content
    var version: String?
    var maxAge: Duration = .zero

    /// The stored original is still current. It is fresh again for its original lifetime.
    public static let unchanged = ProvidedOriginal(content: .unchanged)
    /// The original does not exist. The request fails with `notFound`.
    public static let missing = ProvidedOriginal(content: .missing)

    /// Returns an original in memory.
    ///
    /// - Parameters:
    ///   - version: a string that changes with the bytes, such as a number, a date or a digest. If nil, the default,
    ///     the provider must return all bytes on every call.
    ///   - maxAge: how long stored variants are served without calling the provider. If nil, the default, the provider
    ///     is called every time.
    public static func bytes(_ bytes: [UInt8], version: String? = nil, maxAge: Duration? = nil) -> ProvidedOriginal {
        ProvidedOriginal(content: .bytes(bytes), version: version, maxAge: maxAge ?? .zero)
    }

    /// Returns an original in a file. The pipeline copies the file into its cache and does not change it. For the other
    /// parameters, see `bytes`.
    public static func file(_ path: String, version: String? = nil, maxAge: Duration? = nil) -> ProvidedOriginal {
        ProvidedOriginal(content: .file(path), version: version, maxAge: maxAge ?? .zero)
    }
}

/// Calls a provider in place of an origin. Versions become entity tags, and `maxAge` becomes a `Cache-Control` field.
package struct ProviderTransport: Transport {
    private let provider: any OriginalProvider
    private let configuration: FetchConfiguration
    private let threads: OwnedThreads
    private let slots: CallSlots

    /// - Parameter threads: the threads that read files, because reading blocks.
    package init(_ provider: any OriginalProvider, _ configuration: FetchConfiguration, threads: OwnedThreads) {
        self.provider = provider
        self.configuration = configuration
        self.threads = threads
        slots = CallSlots(configuration.maxConcurrentTransfers)
    }

    package func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        guard request.method == "GET" else { return FetchedResponse(to: request, status: 405) }
        let began = SystemClock.unix.seconds
        let known = request.hasForeignCondition ? nil : request.fields.first("if-none-match").flatMap(Self.version)
        let given = try await queryProvider(request.url, known)
        var response = FetchedResponse(to: request)
        response.requestTime = began
        response.milliseconds = (response.responseTime - began) * 1_000
        response.fields = [HeaderField("Cache-Control", "max-age=\(max(0, given.maxAge.components.seconds))")]
        if let version = given.version { response.fields.append(HeaderField("ETag", Self.tag(version))) }
        switch given.content {
        case .unchanged:
            guard let known else {
                throw FetchError(
                    .protocolViolation, request.url,
                    "the provider returned `unchanged`, although no version was given")
            }
            // The stored original keeps its other header fields.
            (response.status, response.fields) = (304, [HeaderField("ETag", Self.tag(known))])
        case .missing:
            (response.status, response.fields) = (404, [])
            response.problem = "the provider does not have this original"
        case .bytes(let bytes):
            try check(bytes.count, request)
            response.body = bytes
        case .file(let path):
            try await copy(path, to: &response, request)
        }
        let count = response.file?.count ?? response.body.count
        if response.status == 200 { onProgress?(count, count) }
        return response
    }

    /// Returns the provider's result within `totalTimeout`. Does not wait for a provider that ignores its cancellation.
    private func queryProvider(_ url: SourceURL, _ version: String?) async throws(FetchError) -> ProvidedOriginal {
        guard await slots.acquire() else { throw FetchError(.cancelled, url, "cancelled") }
        return try await bounded(
            url, "the provider", seconds: min(configuration.totalSeconds, 1e9), limit: "fetch.totalSeconds",
            code: .transport, atEnd: { [slots] in slots.release() }
        ) { [provider] in try await provider.original(url.path, unless: version) }
    }

    /// Copies a file in the same way as an arriving body is stored. A file larger than `maxBytesInMemory` is copied to
    /// a file in the cache folder. A copy is needed because the tiers take over files that they receive.
    private func copy(
        _ path: String, to response: inout FetchedResponse, _ request: FetchRequest
    ) async throws(FetchError) {
        let limit = request.maxBytes ?? configuration.byteLimit
        do throws(LocalFile.Failure) {
            let body = try await threads.result { [configuration] () throws(LocalFile.Failure) in
                let file = try LocalFile.open(path, byteLimit: limit)
                let body = BodyCollector(
                    folder: configuration.spoolFolder, spoolBytes: configuration.maxBytesInMemory,
                    floor: configuration.spoolFloor)
                guard file.body.forEachPiece(body.append), request.acceptsFile ? body.completeFile() : body.load()
                else {
                    throw LocalFile.Failure(isMissing: false, message: "\(path) cannot be read completely")
                }
                return body
            }
            (response.body, response.file, response.digest) = (
                body.file == nil ? body.bytes : [], body.file, body.digest
            )
        } catch {
            // Clients see only the first message, which contains no paths.
            var failure = FetchError(
                error.isTooLarge ? .tooLarge : .transport, request.url,
                error.isTooLarge
                    ? "the original exceeds the maximum of \(limit) bytes (limits.bytes)"
                    : "the provider's file cannot be used: \(error.message)")
            failure.logged = error.message
            throw failure
        }
    }

    private func check(_ count: Int, _ request: FetchRequest) throws(FetchError) {
        let limit = request.maxBytes ?? configuration.byteLimit
        guard count > limit else { return }
        throw FetchError(
            .tooLarge, request.url, "the original has \(count) bytes; the maximum is \(limit) (limits.bytes)")
    }

    package func shutdown() async {}

    // MARK: Versions

    /// Returns a strong entity tag (RFC 9110 §8.8.3) for a version. A tag cannot contain every character.
    private static func tag(_ version: String) -> String {
        let bytes = version.utf8.flatMap { SourceURL.isUnreserved($0) ? [$0] : SourceURL.percentEncoded($0) }
        return "\"" + String(decoding: bytes, as: UTF8.self) + "\""
    }

    /// Returns the version in the first tag.
    private static func version(_ tags: String) -> String? {
        let parts = tags.split(separator: "\"", omittingEmptySubsequences: false)
        return parts.count < 3 ? nil : String(decoding: SourceURL.percentDecoded(String(parts[1])), as: UTF8.self)
    }
}
