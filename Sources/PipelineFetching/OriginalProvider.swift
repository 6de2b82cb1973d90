import HTTPCaching
package import PipelineSupport

/// Originals that a program has itself: rows of a database, encrypted files, a store of its own.
///
/// A pipeline asks it for the sources `NAME:PATH`, by the name in `PipelineConfiguration.providers`, and treats what it gives
/// like the answer of an origin: stored, shared by all who want it, fresh for `maxAge`, and asked for again by version. Any
/// task may call at any time; the pipeline cancels the task once no request waits for the original. As many calls run at a
/// time as transfers (`fetch.slots`, 16 by default), and the most urgent request is next. A call that ignores its
/// cancellation counts until it returns, or for `fetch.totalSeconds`.
public protocol OriginalProvider: Sendable {
    /// The original under a path, the text after `NAME:` (or `NAME://`, which is the same) as the request has it.
    ///
    /// - Parameter version: of the stored original, if there is one; answer `.unchanged` if it still holds.
    /// - Throws: anything. The request fails with `fetchFailed` and this as its cause, unless a stale original may answer.
    func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal
}

/// What a provider answers.
public struct ProvidedOriginal: Sendable {
    enum Content: Sendable {
        case unchanged, missing
        case bytes([UInt8])
        case file(String)
    }

    let content: Content
    var version: String?
    var maxAge: Duration = .zero

    /// The stored original still holds; it is fresh again for as long as it was at first.
    public static let unchanged = ProvidedOriginal(content: .unchanged)
    /// There is no such original: the request fails with `notFound`.
    public static let missing = ProvidedOriginal(content: .missing)

    /// An original in memory.
    ///
    /// - Parameters:
    ///   - version: any text that changes with the bytes, such as a number, a date or a digest; nil, the default, if there is
    ///     none: then the provider has to give all bytes whenever it is asked.
    ///   - maxAge: for how long stored variants answer without asking the provider; nil, the default, to ask each time.
    public static func bytes(_ bytes: [UInt8], version: String? = nil, maxAge: Duration? = nil) -> ProvidedOriginal {
        ProvidedOriginal(content: .bytes(bytes), version: version, maxAge: maxAge ?? .zero)
    }

    /// An original in a file, which the pipeline copies into its cache, and leaves alone. Otherwise as `bytes`.
    public static func file(_ path: String, version: String? = nil, maxAge: Duration? = nil) -> ProvidedOriginal {
        ProvidedOriginal(content: .file(path), version: version, maxAge: maxAge ?? .zero)
    }
}

/// Asks a provider as an origin is asked: versions are entity tags, `maxAge` is a `Cache-Control`.
package struct ProviderTransport: Transport {
    private let provider: any OriginalProvider
    private let configuration: FetchConfiguration
    private let threads: OwnedThreads
    private let slots: CallSlots

    /// - Parameter threads: for reading files, which blocks.
    package init(_ provider: any OriginalProvider, _ configuration: FetchConfiguration, threads: OwnedThreads) {
        self.provider = provider
        self.configuration = configuration
        self.threads = threads
        slots = CallSlots(configuration.slots)
    }

    package func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        guard request.method == "GET" else { return FetchedResponse(to: request, status: 405) }
        let began = SystemClock.unix.seconds
        let known = request.hasForeignCondition ? nil : request.fields.first("if-none-match").flatMap(Self.version)
        let given = try await asked(request.url, known)
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
                    "its provider answered `unchanged` without having been given a version")
            }
            // The other fields of the stored original stay.
            (response.status, response.fields) = (304, [HeaderField("ETag", Self.tag(known))])
        case .missing:
            (response.status, response.fields) = (404, [])
            response.problem = "its provider has no such original"
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

    /// What the provider answers within `totalSeconds`. One that does not heed its cancellation is not waited for.
    private func asked(_ url: SourceURL, _ version: String?) async throws(FetchError) -> ProvidedOriginal {
        guard await slots.enter() else { throw FetchError(.cancelled, url, "cancelled") }
        let (answers, answer) = AsyncStream<Result<ProvidedOriginal, any Error>?>.makeStream()
        let seconds = min(configuration.totalLimit, 1e9)
        let clock = Task { [slots] in
            try? await Task.sleep(for: .seconds(seconds))
            answer.yield(nil)
            slots.leave()
        }
        let call = Task { [provider] in
            answer.yield(await Result { try await provider.original(url.path, unless: version) })
            clock.cancel()
        }
        defer { call.cancel() }
        for await result in answers {
            switch result {
            case .success(let original)?: return original
            case nil:
                throw FetchError(.timeout, url, "its provider took longer than \(seconds) s (fetch.totalSeconds)")
            case .failure(let error)?:
                if Task.isCancelled { break }
                var failure = FetchError(.transport, url, "its provider failed: \(error)")
                failure.cause = error
                throw failure
            }
        }
        throw FetchError(.cancelled, url, "cancelled")
    }

    /// Copies a file as a body that arrives is written: beyond `spoolBytes` into a file of the cache's own, since the tiers
    /// take over the files that they are given.
    private func copy(
        _ path: String, to response: inout FetchedResponse, _ request: FetchRequest
    ) async throws(FetchError) {
        let limit = request.byteLimit ?? configuration.byteLimit
        do throws(LocalFile.Failure) {
            let body = try await threads.result { [configuration] () throws(LocalFile.Failure) in
                let file = try LocalFile.open(path, byteLimit: limit)
                let body = BodyCollector(
                    folder: configuration.spoolFolder, spoolBytes: configuration.spoolBytes,
                    floor: configuration.spoolFloor)
                guard file.body.forEachPiece(body.append), request.acceptsFile ? body.completeFile() : body.load()
                else {
                    throw LocalFile.Failure(isMissing: false, message: "\(path) cannot be read whole")
                }
                return body
            }
            (response.body, response.file, response.digest) = (
                body.file == nil ? body.bytes : [], body.file, body.digest
            )
        } catch {
            // Clients see the first message, and do not learn paths.
            var failure = FetchError(
                error.isTooLarge ? .tooLarge : .transport, request.url,
                error.isTooLarge ? "it is longer than limits.bytes, \(limit)" : "its provider's file: \(error.message)")
            failure.logged = error.message
            throw failure
        }
    }

    private func check(_ count: Int, _ request: FetchRequest) throws(FetchError) {
        let limit = request.byteLimit ?? configuration.byteLimit
        guard count > limit else { return }
        throw FetchError(.tooLarge, request.url, "it has \(count) bytes; the limit (limits.bytes) is \(limit)")
    }

    package func shutdown() async {}

    // MARK: Versions

    /// A strong entity tag (RFC 9110 §8.8.3), which cannot hold every text.
    private static func tag(_ version: String) -> String {
        let bytes = version.utf8.flatMap { SourceURL.isUnreserved($0) ? [$0] : SourceURL.percentEncoded($0) }
        return "\"" + String(decoding: bytes, as: UTF8.self) + "\""
    }

    /// The version of the first tag.
    private static func version(_ tags: String) -> String? {
        let parts = tags.split(separator: "\"", omittingEmptySubsequences: false)
        return parts.count < 3 ? nil : String(decoding: SourceURL.percentDecoded(String(parts[1])), as: UTF8.self)
    }
}
