import HTTPCaching
import PipelineCaching
import PipelineFetching
import PipelineSupport
import Variants

/// Obtains the original for a finding: uses the stored original, or fetches it with the transport.
struct FetchStage: Sendable {
    let tiers: Tiers
    let purger: Purger
    let backlog: Backlog
    let caching: CachingConfiguration
    /// The operator's freshness settings for specific origins.
    let freshness: [HostOrigin: HostFreshness]
    let acceptedTypes: [String]
    /// The maximum length of a body after decoding its content coding.
    let byteLimit: Int
    let threads: OwnedThreads
    let codings: ContentDecoder
    let failures: FailureMemory
    /// Called before an original is fetched that must be rendered afterwards.
    let willRender: @Sendable () -> Void
    /// The fields that carry the trace context of the current task.
    let traceFields: @Sendable () -> [HeaderField]
    /// The program's hook, called before each request to an origin.
    let willSend: RequestHook?
    /// Returns the current time in Unix seconds.
    let now: @Sendable () -> Double

    /// How to obtain an original.
    enum Plan: Sendable {
        /// Use the stored original, or the bytes that came with the request.
        case reuse(Original)
        /// Use the stored original, and validate it in the background (RFC 5861 §3).
        case reuseAndValidate(Original)
        /// Fetch the original from the origin, or create it from the response of a local transport.
        case fetch(found: FetchedResponse?)
    }

    /// Returns the step after the look-up, ignoring remembered failures. `plan` follows it, and `explain` describes
    /// it.
    func decision(_ finding: CacheFinding, _ admitted: AdmittedRequest) -> Explanation.Decision {
        switch finding.verdict {
        case .local: return .readFile
        case .given: return .reuse
        case .reuse(let isStale): return isStale ? .reuseStale : .reuse
        case .reuseAndValidate: return .reuseAndValidate
        case .unavailable: return .refuse
        case .validate, .missing:
            if admitted.policy == .cacheOnly { return .refuse }
            return finding.hasValidator ? .validate : .fetch
        }
    }

    /// Decides how to obtain an original, without contacting the origin.
    func plan(_ finding: CacheFinding, _ admitted: AdmittedRequest) async throws(PipelineError) -> Plan {
        guard finding.isLocal else { return try remote(finding, admitted) }
        let found = try await find(finding, admitted)
        if found.status == 304, let known = finding.unchanged { return .reuse(known) }
        if case .given = finding.verdict { return .reuse(try await original(found, finding, admitted)) }
        return .fetch(found: found)
    }

    /// Fetches the original from the origin, or creates it from the response of a local transport.
    func callAsFunction(
        _ finding: CacheFinding, _ admitted: AdmittedRequest, found: FetchedResponse?
    ) async throws(PipelineError) -> FetchedOriginal {
        var fetched =
            if let found {
                FetchedOriginal(
                    original: try await original(found, finding, admitted), change: .store(replacing: nil))
            } else {
                try await ask(finding, admitted)
            }
        fetched.original.requestFields = admitted.request.fields
        return fetched
    }

    /// Returns the body of an original, or an empty array if it has no body. If the body is in a file, reads the file.
    func bytes(of original: Original, _ admitted: AdmittedRequest) async throws(PipelineError) -> [UInt8] {
        switch original.body {
        case nil: return []
        case .bytes(let bytes)?: return bytes
        case .file(let file)?:
            if let bytes = await threads.run({ file.bytes() }) { return bytes }
            throw PipelineError(.fetchFailed, "\(admitted.displayName): \(EntryBody.lost)")
        }
    }

    // MARK: Local sources

    /// Queries a local transport, which answers 304 if the stored record describes the current state.
    private func find(
        _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> FetchedResponse {
        do throws(FetchError) { return try await admitted.transport.fetch(fetchRequest(finding, admitted)) } catch {
            throw PipelineError(error)
        }
    }

    private func fetchRequest(_ finding: CacheFinding, _ admitted: AdmittedRequest) -> FetchRequest {
        let tag = finding.record?.response.fields.first("etag")
        return FetchRequest(url: admitted.url, fields: tag.map { [HeaderField("If-None-Match", $0)] } ?? [])
    }

    /// Returns a closure that checks whether a file is unchanged since its record was stored. The closure blocks.
    /// Returns nil if the source is not a file.
    func check(_ finding: CacheFinding, _ admitted: AdmittedRequest) -> (@Sendable () -> Bool)? {
        guard let files = admitted.transport as? FileTransport else { return nil }
        let asked = fetchRequest(finding, admitted)
        return { (try? files.answer(asked))?.status == 304 }
    }

    /// Returns the file unchanged. Its format is detected from its first 16 KiB.
    func file(_ admitted: AdmittedRequest) async throws(PipelineError) -> OriginalResponse {
        let found = try await find(CacheFinding(verdict: .local, marks: tiers.marks(), tier: nil), admitted)
        let format = await threads.run {
            found.file.flatMap { $0.bytes(0..<min($0.count, Self.beginning)) }.flatMap { ImageFormat.recognized($0) }
        }
        let type = format.map { HeaderField("Content-Type", $0.mediaType) }
        guard acceptedTypes.contains("*/*") || type.map({ unacceptedType([$0]) == nil }) == true else {
            throw PipelineError(
                .notAnImage, "\(admitted.displayName): the file is not an image with a type in `acceptedTypes`")
        }
        var response = OriginalResponse(
            status: 200, fields: (type.map { [$0] } ?? []) + found.fields, body: found.body, age: nil,
            handling: CacheHandling(isHit: false, forward: .bypass, detail: "file"), responseTime: found.responseTime)
        response.file = found.file
        return response
    }

    /// The number of bytes at the beginning of a file from which its format is detected.
    private static let beginning = 16_384

    /// Reads the original without storing it, and returns its header and length.
    func inspect(
        _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> (header: Result<ImageHeader, RenderError>, count: Int) {
        var asked = finding
        // If the original is not a picture, its bytes are needed to explain why.
        if asked.record?.header == nil { asked.record = nil }
        let found = try await find(asked, admitted)
        if found.status == 304, let known = asked.record, let header = known.header {
            return (.success(header), known.length)
        }
        let bytes = try await bytes(of: found, admitted)
        let header = await threads.run {
            Result { () throws(RenderError) in
                try EntryBody.bytes(bytes).probe(found.fields, limit: byteLimit)
            }
        }
        return (header, bytes.count)
    }

    private func original(
        _ found: FetchedResponse, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> Original {
        let began = ContinuousClock.now
        let bytes = try await bytes(of: found, admitted)
        admitted.onProgress?(bytes.count, bytes.count)
        let response = StoredResponse(
            status: found.status, fields: found.fields, requestTime: now(), responseTime: now())
        let record = await threads.run {
            self.record(
                of: bytes, response: response, milliseconds: began.duration(to: .now).milliseconds,
                source: admitted.source, digest: found.digest)
        }
        var original = Original(
            record: record, body: .bytes(bytes), outcome: nil, mayStore: true, marks: finding.marks)
        original.isLocal = true
        return original
    }

    /// Returns the bytes of a response. A file is read only once, because it may have changed by the second time.
    private func bytes(
        of found: FetchedResponse, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> [UInt8] {
        guard let file = found.file else { return found.body }
        if let bytes = await threads.run({ file.bytes() }) { return bytes }
        throw PipelineError(
            .fetchFailed,
            "\(admitted.displayName) cannot be read completely, because the file is being changed or the disk is failing; try again"
        )
    }

    // MARK: Origins

    private func remote(
        _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) throws(PipelineError) -> Plan {
        let decision = decision(finding, admitted)
        if let original = finding.reusable {
            try check(original, admitted)
            return decision == .reuseAndValidate ? .reuseAndValidate(original) : .reuse(original)
        }
        let policy = admitted.policy
        if decision == .refuse { throw Self.unavailable(admitted) }
        if policy == .protocol || policy == .cacheElseLoad, finding.forward != .request,
            let failure = failures.remembered(failureKeys(admitted), now: now())
        {
            let answersAll = failure.cause != .unusable || admitted.purpose == .image
            if answersAll, let stale = stale(finding, admitted, after: failure.cause) {
                try check(stale, admitted)
                return .reuse(stale)
            }
            // For raw responses, an error status that may be stored is remembered as a stored response instead.
            if admitted.purpose == .image || failure.cause == .noResponse { throw failure.error }
        }
        return .fetch(found: nil)
    }

    // MARK: Checking responses

    /// Throws if the response cannot be used. A picture requires a 200 with an accepted type. A raw response may have
    /// any status if its type is accepted.
    func check(_ original: Original, _ admitted: AdmittedRequest) throws(PipelineError) {
        let response = original.record.response
        let type =
            admitted.purpose == .image ? unacceptedType(of: original.record) : unacceptedType(response.fields)
        if admitted.purpose == .image, !response.isOK {
            throw Self.error(status: response.status, original.problem, admitted)
        }
        guard let type else { return }
        guard (200..<300).contains(response.status) else {
            throw Self.error(status: response.status, original.problem, admitted)
        }
        throw PipelineError(
            .notAnImage,
            "\(admitted.displayName): the origin sent the media type \(type), which is not an image type; "
                + "if it is an image, add the type to `acceptedTypes`")
    }

    /// Returns the reason why a 200 cannot be rendered, or nil if none is known or the request is not for a picture.
    /// Whether the image data is intact is known only after a render.
    func unusable(_ original: Original, _ admitted: AdmittedRequest) async -> PipelineError? {
        guard admitted.purpose == .image, original.record.response.isOK else { return nil }
        do throws(PipelineError) { try check(original, admitted) } catch { return error }
        guard original.record.header == nil, let body = original.body else { return nil }
        do throws(RenderError) {
            _ = try await codings.header(body, original.record.digest, original.record.response.fields)
            return nil
        } catch {
            return PipelineError(error, source: admitted.displayName)
        }
    }

    /// Forgets earlier failures, because the latest response can be rendered.
    func forgetFailures(_ admitted: AdmittedRequest) { failures.clear(failureKeys(admitted)) }

    /// Remembers that a 200 cannot be rendered.
    func noteUnusable(_ error: PipelineError, _ admitted: AdmittedRequest) {
        _ = failures.note(failureKeys(admitted)[1], error, .unusable, now: now())
    }

    static func unavailable(_ admitted: AdmittedRequest) -> PipelineError {
        PipelineError(
            .notCached,
            "\(admitted.displayName) is not in the cache or not as fresh as requested, and the request forbids "
                + "contacting the origin (`cacheOnly` or `only-if-cached`)")
    }

    /// - Parameter problem: the transport's description of the error, if any.
    static func error(status: Int, _ problem: String?, _ admitted: AdmittedRequest) -> PipelineError {
        let name = admitted.displayName
        let isMissing = status == 404 || status == 410
        let reason = isMissing ? "; " + (problem ?? "check the URL") : problem.map { "; " + $0 }
        var error = PipelineError(
            isMissing ? .notFound : .fetchFailed,
            "\(name): the origin answered \(status)" + (reason ?? ", but an image can be created only from a 200"))
        error.originStatus = status
        return error
    }

    /// Returns the first media type in these fields that is not accepted, or nil if all types are accepted or there are
    /// none.
    func unacceptedType(_ fields: [HeaderField]) -> String? {
        guard !acceptedTypes.contains("*/*") else { return nil }
        return fields.mediaTypes.first { type in
            !acceptedTypes.contains { accepted in
                accepted == type
                    || (accepted.hasSuffix("/*") && type.hasPrefix(accepted.dropLast()))
            }
        }
    }

    /// Returns the media type that makes a record unacceptable for a variant, or nil if the record is acceptable.
    /// Unless `acceptedTypes` was set, the bytes decide rather than `Content-Type`.
    func unacceptedType(of record: OriginalRecord) -> String? {
        let isPicture = record.header != nil && acceptedTypes == PipelineConfiguration.usualTypes
        return isPicture ? nil : unacceptedType(record.response.fields)
    }

    func record(
        of bytes: [UInt8], response: StoredResponse, milliseconds: Double, source: String, finalURL: String? = nil,
        digest: String? = nil
    ) -> OriginalRecord {
        OriginalRecord(
            source: source, response: response, digest: digest ?? sha256Hex(bytes), length: bytes.count,
            // A body that is not an image is stored like any other. Requests for a variant of it then fail.
            header: response.isOK
                ? try? EntryBody.bytes(bytes).probe(response.fields, limit: byteLimit) : nil,
            fetchMilliseconds: milliseconds, finalURL: finalURL)
    }

    /// Returns the record of an origin's response. A body in a file is read on an owned thread, because reading blocks.
    func record(
        of response: FetchedResponse, as stored: StoredResponse, _ admitted: AdmittedRequest, finalURL: String? = nil
    ) async throws(PipelineError) -> OriginalRecord {
        if response.file == nil, ContentCodings(stored.fields) == nil {
            return record(
                of: response.body, response: stored, milliseconds: response.milliseconds, source: admitted.source,
                finalURL: finalURL, digest: response.digest)
        }
        let body = response.file.map { EntryBody.file($0) } ?? .bytes(response.body)
        var digest = response.digest
        if digest == nil { digest = await threads.run { body.digest() } }
        guard let digest else {
            throw PipelineError(.fetchFailed, "\(admitted.displayName): \(EntryBody.lost)")
        }
        let header = stored.isOK ? try? await codings.header(body, digest, stored.fields) : nil
        return OriginalRecord(
            source: admitted.source, response: stored, digest: digest,
            length: response.file?.count ?? response.body.count, header: header,
            fetchMilliseconds: response.milliseconds, finalURL: finalURL)
    }

    /// Returns the failure keys of a request: first the key for missing responses, by source, then the key for error
    /// statuses, by source and request fields. If the request has its own limit of redirects, the third key is for more
    /// redirects than this.
    func failureKeys(_ admitted: AdmittedRequest) -> [String] {
        let fields = admitted.request.fields.map { "\n\($0.name.lowercased()): \($0.value)" }.joined()
        // A failure at one mirror does not imply a failure at the others.
        let place = admitted.isOneOfMany ? "\nat \(admitted.url.origin)" : ""
        let keys = failureKeys(admitted.source + place)
        let limited = admitted.request.maxRedirects.map { "\(keys[0])\nredirects \($0)" }
        return [keys[0], keys[1] + fields] + (limited.map { [$0] } ?? [])
    }

    /// Returns the prefixes of the failure keys of a source.
    func failureKeys(_ source: String) -> [String] { ["no response\n" + source, "status\n" + source] }
}

extension PipelineError {
    /// Creates the error for a failed transfer. The message already names the URL, without credentials.
    package init(_ error: FetchError) {
        let code: Code =
            switch error.code {
            case .refusedAddress, .refusedSource: .sourceRefused
            case .connectTimeout, .timeout, .stalled: .fetchTimedOut
            case .missing: .notFound
            case .tooLarge: .overLimit
            case .cancelled: .cancelled
            default: .fetchFailed
            }
        self.init(code, error.description, cause: error.cause ?? error)
    }
}
