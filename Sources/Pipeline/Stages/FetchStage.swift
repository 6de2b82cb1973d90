import HTTPCaching
import PipelineCaching
import PipelineFetching
import PipelineSupport
import Variants

/// Obtains the original of a finding: reuses what was found, or asks its transport.
struct FetchStage: Sendable {
    let tiers: Tiers
    let purger: Purger
    let backlog: Backlog
    let caching: CachingConfiguration
    /// What operators say of the freshness of some origins' responses.
    let freshness: [HostOrigin: HostFreshness]
    let acceptedTypes: [String]
    /// Of a body without its content coding.
    let byteLimit: Int
    let threads: OwnedThreads
    let codings: UndoneCodings
    let failures: FailureMemory
    /// Called when the origin is asked for an original that will have to be rendered.
    let willRender: @Sendable () -> Void
    /// The fields that carry the trace context of the current task.
    let traceFields: @Sendable () -> [HeaderField]
    /// Unix seconds.
    let now: @Sendable () -> Double

    /// How to obtain an original.
    enum Course: Sendable {
        /// The stored one, or the bytes that came with the request.
        case reuse(Original)
        /// The stored one, while the origin is asked in the background (RFC 5861 §3).
        case reuseAndValidate(Original)
        /// From the origin, or out of what a local transport has found.
        case fetch(found: FetchedResponse?)
    }

    /// Decides how to obtain an original, without contacting the origin.
    func course(_ finding: CacheFinding, _ admitted: AdmittedRequest) async throws(PipelineError) -> Course {
        guard admitted.transport.isLocal else { return try remote(finding, admitted) }
        let found = try await find(finding, admitted)
        if found.status == 304, let known = finding.record {
            return .reuse(Original(record: known, outcome: .none, mayStore: true, marks: finding.marks))
        }
        guard admitted.transport.keepsRecords else {
            return .reuse(try await taken(found, finding, admitted))
        }
        return .fetch(found: found)
    }

    /// Obtains the original from the origin, or out of what was found.
    func callAsFunction(
        _ finding: CacheFinding, _ admitted: AdmittedRequest, found: FetchedResponse?
    ) async throws(PipelineError) -> FetchedOriginal {
        var fetched =
            if let found {
                FetchedOriginal(
                    original: try await taken(found, finding, admitted), change: .store(replacing: nil))
            } else {
                try await ask(finding, admitted)
            }
        fetched.original.requestFields = admitted.request.fields
        return fetched
    }

    /// The body of an original that has one, in memory; a body in a file is read now.
    func bytes(of original: Original, _ admitted: AdmittedRequest) async throws(PipelineError) -> [UInt8] {
        switch original.body {
        case nil: return []
        case .bytes(let bytes)?: return bytes
        case .file(let file)?:
            if let bytes = await threads.run({ file.bytes() }) { return bytes }
            throw PipelineError(.fetchFailed, "\(admitted.displayName): \(EntryBody.lost)")
        }
    }

    // MARK: What is at hand

    /// Asks a local transport, which answers 304 if the stored record is of the same state.
    private func find(
        _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> FetchedResponse {
        let tag = finding.record?.response.fields.first("etag")
        let asked = FetchRequest(
            url: admitted.url, fields: tag.map { [HeaderField("If-None-Match", $0)] } ?? [])
        do throws(FetchError) { return try await admitted.transport.fetch(asked) } catch {
            throw PipelineError(error)
        }
    }

    /// A folder's file as it is. What it is its first bytes tell; the rest is not read.
    func file(_ admitted: AdmittedRequest) async throws(PipelineError) -> OriginalResponse {
        let found = try await find(CacheFinding(verdict: .missing, marks: tiers.marks(), tier: .none), admitted)
        let format = await threads.run {
            found.file.flatMap { $0.bytes(0..<min($0.count, Self.beginning)) }.flatMap { ImageFormat.recognised($0) }
        }
        let type = format.map { HeaderField("Content-Type", $0.mediaType) }
        guard acceptedTypes.contains("*/*") || type.map({ unacceptedType([$0]) == nil }) == true else {
            throw PipelineError(
                .notAnImage, "\(admitted.displayName): it is no image of a type in `acceptedTypes`")
        }
        var response = OriginalResponse(
            status: 200, fields: (type.map { [$0] } ?? []) + found.fields, body: found.body, age: nil,
            handling: CacheHandling(isHit: false, forward: .bypass, detail: "file"), responseTime: found.responseTime)
        response.file = found.file
        return response
    }

    /// Bytes of a file that tell its format.
    private static let beginning = 16_384

    /// What a request would find; nothing is stored.
    func look(
        _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> (header: Result<ImageHeader, RenderError>, count: Int) {
        var asked = finding
        // Why it is no picture only the bytes tell.
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

    private func taken(
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
        return Original(record: record, body: .bytes(bytes), outcome: .none, mayStore: true, marks: finding.marks)
    }

    /// The bytes found, read once: a file that is read again may have changed.
    private func bytes(
        of found: FetchedResponse, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> [UInt8] {
        guard let file = found.file else { return found.body }
        if let bytes = await threads.run({ file.bytes() }) { return bytes }
        throw PipelineError(
            .fetchFailed,
            "\(admitted.displayName) cannot be read whole: it is being changed, or the disk fails; try again")
    }

    // MARK: Origins

    private func remote(
        _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) throws(PipelineError) -> Course {
        if let original = finding.reusable {
            try check(original, admitted)
            if case .reuseAndValidate = finding.verdict { return .reuseAndValidate(original) }
            return .reuse(original)
        }
        let policy = admitted.policy
        if case .unavailable = finding.verdict { throw Self.unavailable(admitted) }
        if policy == .cacheOnly { throw Self.unavailable(admitted) }
        if policy == .protocol || policy == .cacheElseLoad, finding.forward != .request,
            let failure = failures.remembered(failureKeys(admitted), now: now())
        {
            let answersAll = failure.cause != .unusable || admitted.purpose == .image
            if answersAll, let stale = stale(finding, admitted, after: failure.cause) {
                try check(stale, admitted)
                return .reuse(stale)
            }
            // For a raw response, an error status is remembered as a stored response instead, if it may be stored.
            if admitted.purpose == .image || failure.cause == .noResponse { throw failure.error }
        }
        return .fetch(found: nil)
    }

    // MARK: Checking responses

    /// Throws unless the response can be passed on. A picture is only made from a 200 of an accepted type; a raw
    /// response may have any status, if its type is accepted.
    func check(_ original: Original, _ admitted: AdmittedRequest) throws(PipelineError) {
        if admitted.transport.isLocal { return }
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
            "\(admitted.displayName): the origin says it is \(type), not an image; "
                + "add the type to `acceptedTypes` if it is one")
    }

    /// Why no variant can be made of a 200; nil if nothing is known against it, or none is wanted. Whether its data is
    /// intact only a render shows.
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

    /// Forgets the failures before a response of which a variant could be made.
    func forgetFailures(_ admitted: AdmittedRequest) { failures.clear(failureKeys(admitted)) }

    /// Remembers that no variant can be made of a 200.
    func noteUnusable(_ error: PipelineError, _ admitted: AdmittedRequest) {
        _ = failures.note(failureKeys(admitted)[1], error, .unusable, now: now())
    }

    static func unavailable(_ admitted: AdmittedRequest) -> PipelineError {
        PipelineError(
            .notCached,
            "\(admitted.displayName) is not in the cache, or not as fresh as requested, and the request forbids "
                + "contacting the origin (`cacheOnly` or `only-if-cached`)")
    }

    /// - Parameter problem: what the transport knows of it.
    static func error(status: Int, _ problem: String?, _ admitted: AdmittedRequest) -> PipelineError {
        let name = admitted.displayName
        if status == 404 || status == 410 {
            return PipelineError(.notFound, "\(name): the origin answered \(status); \(problem ?? "check the URL")")
        }
        return PipelineError(
            .fetchFailed,
            "\(name): the origin answered \(status)"
                + (problem.map { "; " + $0 } ?? ", and an image is only made from a 200"))
    }

    /// The first media type of these fields that is not accepted; nil if all are, or if there is none.
    func unacceptedType(_ fields: [HeaderField]) -> String? {
        guard !acceptedTypes.contains("*/*") else { return nil }
        return fields.mediaTypes.first { type in
            !acceptedTypes.contains { accepted in
                accepted == type
                    || (accepted.hasSuffix("/*") && type.hasPrefix(accepted.dropLast()))
            }
        }
    }

    /// The same for a variant. Unless `acceptedTypes` was set, the bytes decide, not `Content-Type`.
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
            // A body that is not an image is stored like any other; a request for a variant of it then fails.
            header: response.isOK
                ? try? EntryBody.bytes(bytes).probe(response.fields, limit: byteLimit) : nil,
            fetchMilliseconds: milliseconds, finalURL: finalURL)
    }

    /// The record of an origin's response. A body in a file is read on a thread of our own, because that blocks.
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

    /// The keys of a request's failures: by source for a missing response, by request fields too for a status.
    func failureKeys(_ admitted: AdmittedRequest) -> [String] {
        let fields = admitted.request.fields.map { "\n\($0.name.lowercased()): \($0.value)" }.joined()
        // What fails at one of several origins says nothing of the others.
        let place = admitted.isOneOfMany ? "\nat \(admitted.url.origin)" : ""
        let keys = failureKeys(admitted.source + place)
        return [keys[0], keys[1] + fields]
    }

    /// The prefixes of those keys.
    func failureKeys(_ source: String) -> [String] { ["no response\n" + source, "status\n" + source] }
}

extension PipelineError {
    /// The error for a failed transfer; its message already names the URL without credentials.
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
