import HTTPCaching
import PipelineCaching
import PipelineFetching
import PipelineSupport
import Variants

/// Obtains the original of a finding: reuses the record, validates it, or fetches it, once for concurrent requests.
struct FetchStage: Sendable {
    let cache: CacheStage
    let tiers: CacheTiers
    let transport: any Transport
    let caching: CachingConfiguration
    let acceptedTypes: [String]
    let byteLimit: Int
    let flights: Flights<Original>
    let store: StoreStage
    let threads: OwnedThreads
    let background: BackgroundWork
    let failures: SharedFailureMemory
    /// Called when the origin is asked for an original that will have to be rendered.
    let willRender: @Sendable () -> Void
    /// Unix seconds.
    let now: @Sendable () -> Double

    func callAsFunction(_ finding: CacheFinding) async throws(PipelineError) -> Original {
        let admitted = finding.admitted
        switch admitted.origin {
        case .bytes(let bytes):
            let record = self.record(of: bytes, response: unconditional(), milliseconds: 0, source: admitted.source)
            return Original(
                admitted: admitted, record: record, body: .bytes(bytes), outcome: .none, mayStore: true,
                generation: finding.generation)
        case .file(let path):
            return try await file(path, finding)
        case .remote(let url):
            let original = try checked(try await remote(url, finding))
            return admitted.purpose == .original ? try await withBody(original) : original
        }
    }

    /// Returns the original with its body, which is taken from the caches or fetched again without validators.
    func withBody(_ original: Original) async throws(PipelineError) -> Original {
        if original.body != nil { return original }
        var original = original
        if let (body, tier) = await tiers.originalBody(original.record.digest, of: original.record) {
            original.body = body
            original.tier = OriginalOutcome(tier)
            if original.outcome == .none { original.outcome = original.tier }
            return original
        }
        let again = CacheFinding(
            admitted: original.admitted, verdict: .missing, forward: .miss, generation: original.generation,
            tier: .none, missingBody: original.record.digest)
        return try await self(again)
    }

    /// The body of an original that has one, in memory; a body in a file is read now.
    func bytes(of original: Original) async throws(PipelineError) -> [UInt8] {
        switch original.body {
        case nil: return []
        case .bytes(let bytes)?: return bytes
        case .file(let file)?:
            if let bytes = await threads.run({ file.bytes() }) { return bytes }
            throw PipelineError(.fetchFailed, "\(original.admitted.displayName): \(EntryBody.lost)")
        }
    }

    // MARK: Files

    /// Reads a file whose record is out of date or whose body is wanted, once for all that see the same file.
    private func file(_ path: String, _ finding: CacheFinding) async throws(PipelineError) -> Original {
        let limit = byteLimit
        let admitted = finding.admitted
        let opened = await threads.run { () -> Result<LocalFile, PipelineError> in
            do throws(LocalFile.Failure) {
                return .success(try LocalFile.open(path, byteLimit: limit))
            } catch {
                return .failure(PipelineError(error))
            }
        }
        let file = try opened.get()
        let response = unconditional([HeaderField("File-Identity", file.identity)])
        if let known = finding.record, known.response.fields == response.fields {
            return Original(
                admitted: admitted, record: known, body: nil, outcome: .none, mayStore: true,
                generation: finding.generation)
        }
        let request = admitted.request
        // A caller that opened the file after a change sees another identity.
        let key = "file\n\(path)\n\(admitted.source)\n\(file.identity)\n\(request.storage.rawValue)"
        var (original, isCollapsed) = try await flights.value(
            for: key, priority: request.priority, finishWhenAbandoned: request.finishWhenAbandoned
        ) { () async throws(PipelineError) -> Original in
            try await read(file, response, finding)
        }
        if isCollapsed { original.admitted = admitted }
        return original
    }

    /// What a request would find at a path; nothing is stored.
    func look(
        at path: String, _ finding: CacheFinding
    ) async throws(PipelineError) -> (header: Result<ImageHeader, RenderError>, count: Int) {
        let limit = byteLimit
        let known = finding.record
        return try await threads.run { () -> Result<(Result<ImageHeader, RenderError>, Int), PipelineError> in
            do throws(LocalFile.Failure) {
                let file = try LocalFile.open(path, byteLimit: limit)
                let fields = [HeaderField("File-Identity", file.identity)]
                if let known, known.response.fields == fields, let header = known.header {
                    return .success((.success(header), file.byteCount))
                }
                let bytes = try file.bytes()
                return .success((Result { () throws(RenderError) in try ImageHeader.probe(bytes) }, bytes.count))
            } catch {
                return .failure(PipelineError(error))
            }
        }.get()
    }

    private func read(
        _ file: LocalFile, _ response: StoredResponse, _ finding: CacheFinding
    ) async throws(PipelineError) -> Original {
        let source = finding.admitted.source
        let answer = await threads.run { () -> Result<(OriginalRecord, [UInt8]), PipelineError> in
            do throws(LocalFile.Failure) {
                let began = ContinuousClock.now
                let bytes = try file.bytes()
                let record = self.record(
                    of: bytes, response: response, milliseconds: began.duration(to: .now).milliseconds, source: source)
                return .success((record, bytes))
            } catch {
                return .failure(PipelineError(error))
            }
        }
        let (record, bytes) = try answer.get()
        let original = Original(
            admitted: finding.admitted, record: record, body: .bytes(bytes), outcome: .none, mayStore: true,
            generation: finding.generation)
        store(original, as: record)
        return original
    }

    // MARK: Origins

    private func remote(_ url: SourceURL, _ finding: CacheFinding) async throws(PipelineError) -> Original {
        let admitted = finding.admitted
        if let original = reused(finding) {
            if case .reuseAndValidate = finding.verdict { validateInBackground(url, finding) }
            return original
        }
        let policy = admitted.request.policy
        if case .unavailable = finding.verdict { throw Self.unavailable(admitted) }
        if policy == .cacheOnly { throw Self.unavailable(admitted) }
        if policy == .protocol || policy == .cacheElseLoad, finding.forward != .request,
            let failure = failures.remembered(failureKeys(admitted), now: now())
        {
            if let stale = stale(finding, after: failure.cause) { return stale }
            // For a raw response, an error status is remembered as a stored response instead, if it may be stored.
            if admitted.purpose == .image || failure.cause == .noResponse { throw failure.error }
        }
        return try await shared(url, finding)
    }

    /// The stored original, if it may be used without asking the origin first.
    private func reused(_ finding: CacheFinding) -> Original? {
        guard let record = finding.record else { return nil }
        let isStale: Bool
        switch finding.verdict {
        case .reuse(let stale): isStale = stale
        case .reuseAndValidate: isStale = true
        case .validate, .missing, .unavailable: return nil
        }
        // For a raw response report the tier it came from; for an image, whether the origin was contacted.
        let tier: OriginalOutcome = finding.body == nil ? .none : finding.tier
        return Original(
            admitted: finding.admitted, record: record, body: finding.body, outcome: isStale ? .stale : tier,
            tier: finding.tier, isStale: isStale, mayStore: true, generation: finding.generation)
    }

    // MARK: Sharing

    private func shared(_ url: SourceURL, _ finding: CacheFinding) async throws(PipelineError) -> Original {
        let request = finding.admitted.request
        var key = flightKey(url, finding)
        // The second round is for waiters that the first answer does not fit because it varies; now the keys differ.
        for _ in 0..<2 {
            let (original, isCollapsed) = try await flights.value(
                for: key, priority: request.priority, finishWhenAbandoned: request.finishWhenAbandoned
            ) { [key] () async throws(PipelineError) -> Original in
                try await askOnce(url, finding, key)
            }
            guard isCollapsed else { return original }
            if answers(original, finding.admitted) {
                var mine = original
                mine.admitted = finding.admitted
                mine.isCollapsed = true
                mine.received = nil
                return mine
            }
            guard original.mayStore, !selects(original, finding.admitted) else { break }
            key += selectionText(original.record.response.selecting.keys.sorted(), finding.admitted)
        }
        // A response that may not be stored, or not be reused, answers one request only: each waiter asks for itself.
        return try await ask(url, finding)
    }

    /// Asks the origin, unless another process on the cache folder is doing so: then waits for what it stores.
    private func askOnce(
        _ url: SourceURL, _ finding: CacheFinding, _ key: String
    ) async throws(PipelineError) -> Original {
        guard finding.admitted.request.storage.contains(.originalsOnDisk), mayUseStored(finding) else {
            if let stored = await storedMeanwhile(finding) { return stored }
            return try await ask(url, finding)
        }
        return try await tiers.once(.original, key) {
            await storedMeanwhile(finding, looksOnDisk: true)
        } check: { original in
            let record = original.record
            // A response that needs revalidation is not shared: waiters would revalidate it one after another.
            guard original.mayStore, !original.isStale,
                Reuse.decision(stored: record.response, now: now(), policy: .protocol, configuration: caching) == .fresh
            else { return nil }
            let (source, digest, hasBody) = (record.source, record.digest, original.body != nil)
            return { disk throws(StoreError) in
                guard try disk.holdsRecord(source: source, digest: digest) else { return false }
                return hasBody ? try disk.holdsOriginal(digest: digest) : true
            }
        } work: { () async throws(PipelineError) -> Original in
            try await ask(url, finding)
        }
    }

    /// The coalescing key: everything that makes two requests' answers differ, as far as it is known before asking.
    /// Fields that no stored response varies on are left out, as they may be unique to each client.
    private func flightKey(_ url: SourceURL, _ finding: CacheFinding) -> String {
        let admitted = finding.admitted
        let request = admitted.request
        // A request made after a purge does not join one made before it. Processes on one folder share the count.
        let generation = tiers.disk == nil ? finding.generation.originals : finding.generation.disk
        var parts = [
            admitted.source, url.normalised, request.policy.rawValue, String(request.storage.rawValue),
            String(generation),
        ]
        if let digest = finding.missingBody { parts.append("body \(digest)") }
        if finding.forward == .request { parts.append("request") }
        if !admitted.followsRedirects { parts.append("redirects") }
        if CacheControl(fields: request.fields).has("no-store") { parts.append("no-store") }
        parts += request.fields.values(of: "authorization")
        if finding.record == nil { parts += admitted.conditions.map { "\($0.name.lowercased()): \($0.value)" } }
        // After a 304 a picture's body can stay in the store; a raw response needs it.
        if !finding.records.isEmpty, admitted.purpose == .original { parts.append("whole") }
        let names = Set(finding.records.flatMap { $0.response.selecting.keys })
        // No field contains a line feed.
        return parts.joined(separator: "\n") + selectionText(names.sorted(), admitted)
    }

    private func selectionText(_ names: [String], _ admitted: AdmittedRequest) -> String {
        if names.isEmpty { return "" }
        let vary = names.map { HeaderField("Vary", $0) }
        let values = Variation.selectingFields(of: vary, requestFields: admitted.request.fields) ?? [:]
        return values.sorted { $0.key < $1.key }.map { name, value in
            "\n" + name + (value.map { ": " + $0 } ?? "")
        }.joined()
    }

    private func selects(_ original: Original, _ admitted: AdmittedRequest) -> Bool {
        Redirects.selects(original.record.response, requestFields: admitted.request.fields)
    }

    /// Statuses that may depend on the requester, whatever the origin says about caching (RFC 9110 §15.5, RFC 6585 §4).
    static let personalStatuses: Set<Int> = [401, 403, 407, 429]

    /// Whether the response that another request got answers this one as well.
    private func answers(_ original: Original, _ admitted: AdmittedRequest) -> Bool {
        let response = original.record.response
        let asksAlike = original.admitted.request.fields == admitted.request.fields
        let isError = admitted.purpose == .image && (try? checked(original)) == nil
        // An error response is shared with all waiters for an image, unless the origin marks it private, or it may
        // depend on the requester (401, 403, 407, 429) and the request fields differ.
        let isCommonError = isError && (asksAlike || !Self.personalStatuses.contains(response.status))
        guard original.mayStore else {
            return isCommonError && ["status", "conditional", "no-lifetime", "type"].contains(original.refusal)
        }
        guard selects(original, admitted) else { return false }
        // Requests with equal fields would get equal answers, and a response that the origin has just confirmed is
        // confirmed for every request that selects it. Other responses must be reusable as they are (RFC 9111 §4).
        return asksAlike || isCommonError || original.outcome == .revalidated
            || Reuse.decision(
                stored: response, now: now(), policy: .protocol, configuration: caching,
                directives: admitted.directives) == .fresh
    }

    /// Whether a response that others store in the meantime may answer.
    private func mayUseStored(_ finding: CacheFinding) -> Bool {
        let policy = finding.admitted.request.policy
        return finding.missingBody != nil
            || (policy == .protocol || policy == .cacheElseLoad) && finding.forward != .request
    }

    /// Looks again, because a fetch that finished after the look-up may have stored the answer to this request too.
    ///
    /// - Parameter looksOnDisk: looks there even if memory has records: another process may have done the fetch.
    private func storedMeanwhile(_ finding: CacheFinding, looksOnDisk: Bool = false) async -> Original? {
        guard mayUseStored(finding) else { return nil }
        if let digest = finding.missingBody {
            guard let (body, tier) = await tiers.originalBody(digest) else { return nil }
            var original = reusedWhole(await cache(finding.admitted, looksOnDisk: looksOnDisk), digest)
            // Kept, because the caller has already looked for the body and does not look again.
            original?.body = body
            original?.tier = OriginalOutcome(tier)
            original?.outcome = OriginalOutcome(tier)
            return original
        }
        let again = await cache(finding.admitted, looksOnDisk: looksOnDisk)
        switch again.verdict {
        case .reuse(isStale: false): return reused(again)
        case .reuse(isStale: true) where finding.record == nil: return reused(again)
        default: return nil
        }
    }

    private func reusedWhole(_ finding: CacheFinding, _ digest: Digest) -> Original? {
        guard let record = finding.record, record.digest == digest else { return nil }
        return Original(
            admitted: finding.admitted, record: record, body: nil, outcome: .none, mayStore: true,
            generation: finding.generation)
    }

    /// Validates a stale response that has already been answered with (RFC 5861 §3).
    private func validateInBackground(_ url: SourceURL, _ finding: CacheFinding) {
        var finding = finding
        finding.verdict = .validate
        finding.forward = .stale
        finding.admitted.events = { _ in }
        finding.admitted.request.priority = .low
        finding.admitted.request.delay = .zero
        finding.admitted.request.finishWhenAbandoned = true
        let asked = finding
        background.start(flightKey(url, finding)) { () async throws(PipelineError) in
            let original = try await shared(url, asked)
            // The stored response answered again: the origin failed, or sent nothing usable.
            if original.isStale { throw PipelineError(.fetchFailed, "\(asked.admitted.displayName): still stale") }
        }
    }

    // MARK: Checking responses

    /// Throws unless the response can be passed on. A picture is only made from a 200 of an accepted type; a raw
    /// response may have any status, if its type is accepted.
    @discardableResult
    func checked(_ original: Original) throws(PipelineError) -> Original {
        let response = original.record.response
        let admitted = original.admitted
        let isSuccess = (200..<300).contains(response.status)
        let type = unacceptedType(response.fields)
        if admitted.purpose == .image, response.status != 200 { throw Self.error(status: response.status, admitted) }
        guard let type else { return original }
        guard isSuccess else { throw Self.error(status: response.status, admitted) }
        throw PipelineError(
            .notAnImage,
            "\(admitted.displayName): the origin says it is \(type), not an image; "
                + "add the type to `acceptedTypes` if it is one")
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

    /// The media type of these fields if it is not accepted; nil if it is, or if there is none.
    func unacceptedType(_ fields: [HeaderField]) -> String? {
        guard !acceptedTypes.contains("*/*"), let value = fields.values(of: "content-type").last else { return nil }
        let bytes = value.utf8.prefix { $0 != UInt8(ascii: ";") }.filter { $0 != 0x20 && $0 != 0x09 }
        let type = FieldLines.lowercased(String(decoding: bytes, as: UTF8.self))
        let isAccepted = acceptedTypes.contains { accepted in
            accepted == type
                || (accepted.hasSuffix("/*") && type.hasPrefix(accepted.dropLast()))
        }
        return isAccepted ? nil : type
    }

    func record(
        of bytes: [UInt8], response: StoredResponse, milliseconds: Double, source: String, finalURL: String? = nil,
        digest: Digest? = nil
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
