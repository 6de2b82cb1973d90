import HTTPCaching
import PipelineCaching
import PipelineFetching
import PipelineSupport
import Variants

/// Obtains the original of a finding: reuses what was found, or asks the origin, or reads the file.
struct FetchStage: Sendable {
    let tiers: Tiers
    let transport: any Transport
    let backlog: Backlog
    let caching: CachingConfiguration
    let acceptedTypes: [String]
    let byteLimit: Int
    let threads: OwnedThreads
    let failures: FailureMemory
    /// Called when the origin is asked for an original that will have to be rendered.
    let willRender: @Sendable () -> Void
    /// The fields that carry the trace context of the current task.
    let traceFields: @Sendable () -> [HeaderField]
    /// Unix seconds.
    let now: @Sendable () -> Double

    /// What has to be read to obtain an original.
    enum Target: Sendable {
        case origin(SourceURL)
        case file(LocalFile)

        var isOrigin: Bool { if case .origin = self { true } else { false } }
    }

    /// How to obtain an original.
    enum Course: Sendable {
        /// The stored one, or the bytes that came with the request.
        case reuse(Original)
        /// The stored one, while the origin is asked in the background (RFC 5861 §3).
        case reuseAndValidate(Original, SourceURL)
        case fetch(Target)
    }

    /// Decides how to obtain an original, without contacting the origin.
    func course(_ finding: CacheFinding, _ admitted: AdmittedRequest) async throws(PipelineError) -> Course {
        switch admitted.origin {
        case .bytes(let bytes, let digest):
            let (response, source) = (unconditional(), admitted.source)
            let record = await threads.run {
                self.record(of: bytes, response: response, milliseconds: 0, source: source, digest: digest)
            }
            return .reuse(
                Original(record: record, body: .bytes(bytes), outcome: .none, mayStore: true, marks: finding.marks))
        case .file(let path):
            let limit = byteLimit
            let file = try await reading { () throws(LocalFile.Failure) in
                try LocalFile.open(path, byteLimit: limit)
            }
            guard let known = finding.record, known.response.fields == [Self.identity(of: file)] else {
                return .fetch(.file(file))
            }
            return .reuse(Original(record: known, outcome: .none, mayStore: true, marks: finding.marks))
        case .remote(let url):
            return try remote(url, finding, admitted)
        }
    }

    /// Reads the original from the origin or the file.
    func callAsFunction(
        _ target: Target, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> FetchedOriginal {
        var fetched: FetchedOriginal
        switch target {
        case .origin(let url): fetched = try await ask(url, finding, admitted)
        case .file(let file): fetched = try await read(file, finding, admitted)
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

    // MARK: Files

    /// Identifies the state of a file. A caller that opened it after a change sees another one.
    static func identity(of file: LocalFile) -> HeaderField { HeaderField("File-Identity", file.identity) }

    /// Runs a job that reads a file on a thread of our own, because that blocks.
    private func reading<Value: Sendable>(
        _ job: @escaping @Sendable () throws(LocalFile.Failure) -> Value
    ) async throws(PipelineError) -> Value {
        do throws(LocalFile.Failure) { return try await threads.result(job) } catch { throw PipelineError(error) }
    }

    /// What a request would find at a path; nothing is stored.
    func look(
        at path: String, _ finding: CacheFinding
    ) async throws(PipelineError) -> (header: Result<ImageHeader, RenderError>, count: Int) {
        let (limit, known) = (byteLimit, finding.record)
        return try await reading { () throws(LocalFile.Failure) in
            let file = try LocalFile.open(path, byteLimit: limit)
            if let known, known.response.fields == [Self.identity(of: file)], let header = known.header {
                return (.success(header), file.byteCount)
            }
            let bytes = try file.bytes()
            return (Result { () throws(RenderError) in try ImageHeader.probe(bytes) }, bytes.count)
        }
    }

    private func read(
        _ file: LocalFile, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> FetchedOriginal {
        let (response, source) = (unconditional([Self.identity(of: file)]), admitted.source)
        let (record, bytes) = try await reading { () throws(LocalFile.Failure) in
            let began = ContinuousClock.now
            let bytes = try file.bytes()
            let record = self.record(
                of: bytes, response: response, milliseconds: began.duration(to: .now).milliseconds, source: source)
            return (record, bytes)
        }
        let original = Original(
            record: record, body: .bytes(bytes), outcome: .none, mayStore: true, marks: finding.marks)
        return FetchedOriginal(original: original, change: .store(replacing: nil))
    }

    // MARK: Origins

    private func remote(
        _ url: SourceURL, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) throws(PipelineError) -> Course {
        if let original = finding.reusable {
            try check(original, admitted)
            if case .reuseAndValidate = finding.verdict { return .reuseAndValidate(original, url) }
            return .reuse(original)
        }
        let policy = admitted.request.policy
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
        return .fetch(.origin(url))
    }

    // MARK: Checking responses

    /// Throws unless the response can be passed on. A picture is only made from a 200 of an accepted type; a raw
    /// response may have any status, if its type is accepted.
    func check(_ original: Original, _ admitted: AdmittedRequest) throws(PipelineError) {
        guard case .remote = admitted.origin else { return }
        let response = original.record.response
        let type = unacceptedType(response.fields)
        if admitted.purpose == .image, response.status != 200 { throw Self.error(status: response.status, admitted) }
        guard let type else { return }
        guard (200..<300).contains(response.status) else { throw Self.error(status: response.status, admitted) }
        throw PipelineError(
            .notAnImage,
            "\(admitted.displayName): the origin says it is \(type), not an image; "
                + "add the type to `acceptedTypes` if it is one")
    }

    /// Why no variant can be made of a 200; nil if nothing is known against it, or none is wanted. Whether its data is
    /// intact only a render shows.
    func unusable(_ original: Original, _ admitted: AdmittedRequest) async -> PipelineError? {
        guard admitted.purpose == .image, original.record.response.status == 200 else { return nil }
        do throws(PipelineError) { try check(original, admitted) } catch { return error }
        guard original.record.header == nil, let body = original.body else { return nil }
        let failure = await threads.run { () -> RenderError? in
            do throws(RenderError) {
                _ = try body.probe()
                return nil
            } catch {
                return error
            }
        }
        return failure.map { PipelineError($0, source: admitted.displayName) }
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

    static func error(status: Int, _ admitted: AdmittedRequest) -> PipelineError {
        let name = admitted.displayName
        if status == 404 || status == 410 {
            return PipelineError(.notFound, "\(name): the origin answered \(status); check the URL")
        }
        return PipelineError(
            .fetchFailed, "\(name): the origin answered \(status), and an image is only made from a 200")
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

    func record(
        of bytes: [UInt8], response: StoredResponse, milliseconds: Double, source: String, finalURL: String? = nil,
        digest: String? = nil
    ) -> OriginalRecord {
        OriginalRecord(
            source: source, response: response, digest: digest ?? sha256Hex(bytes), length: bytes.count,
            // A body that is not an image is stored like any other; a request for a variant of it then fails.
            header: response.status == 200 ? try? ImageHeader.probe(bytes) : nil, fetchMilliseconds: milliseconds,
            finalURL: finalURL)
    }

    /// The record of an origin's response. A body in a file is read on a thread of our own, because that blocks.
    func record(
        of response: FetchedResponse, as stored: StoredResponse, _ admitted: AdmittedRequest, finalURL: String? = nil
    ) async throws(PipelineError) -> OriginalRecord {
        guard let file = response.file else {
            return record(
                of: response.body, response: stored, milliseconds: response.milliseconds, source: admitted.source,
                finalURL: finalURL, digest: response.digest)
        }
        let body = EntryBody.file(file)
        let (digest, header) = await threads.run {
            (response.digest ?? body.digest(), stored.status == 200 ? try? body.probe() : nil)
        }
        guard let digest else {
            throw PipelineError(.fetchFailed, "\(admitted.displayName): \(EntryBody.lost)")
        }
        return OriginalRecord(
            source: admitted.source, response: stored, digest: digest, length: file.count, header: header,
            fetchMilliseconds: response.milliseconds, finalURL: finalURL)
    }

    /// The keys of a request's failures: by source for a missing response, by request fields too for a status.
    func failureKeys(_ admitted: AdmittedRequest) -> [String] {
        let fields = admitted.request.fields.map { "\n\($0.name.lowercased()): \($0.value)" }.joined()
        let keys = failureKeys(admitted.source)
        return [keys[0], keys[1] + fields]
    }

    /// The prefixes of those keys.
    func failureKeys(_ source: String) -> [String] { ["no response\n" + source, "status\n" + source] }

    private func unconditional(_ fields: [HeaderField] = []) -> StoredResponse {
        StoredResponse(status: 200, fields: fields, requestTime: now(), responseTime: now())
    }
}

extension PipelineError {
    /// The error for a file that cannot be read.
    fileprivate init(_ failure: LocalFile.Failure) {
        let code: Code = failure.isMissing ? .notFound : failure.isTooLarge ? .overLimit : .fetchFailed
        self.init(code, failure.message, cause: failure)
    }

    /// The error for a failed transfer; its message already names the URL without credentials.
    init(_ error: FetchError) {
        let code: Code =
            switch error.code {
            case .refusedAddress, .refusedSource: .sourceRefused
            case .connectTimeout, .timeout, .stalled: .fetchTimedOut
            case .tooLarge: .overLimit
            case .cancelled: .cancelled
            default: .fetchFailed
            }
        self.init(code, error.description, cause: error)
    }
}
