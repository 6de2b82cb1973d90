import Variants

/// Obtains the original of a finding: reuses the record, validates it, or fetches, once for everybody who asks now.
struct FetchStage: Sendable {
    let cache: CacheStage
    let tiers: CacheTiers
    let transport: any Transport
    let configuration: FetchConfiguration
    let caching: CachingConfiguration
    let acceptedTypes: [String]
    let byteLimit: Int
    let flights: Flights<Original>
    let store: StoreStage
    let threads: OwnedThreads
    /// Unix seconds.
    let now: @Sendable () -> Double

    func callAsFunction(_ finding: CacheFinding) async throws(PipelineError) -> Original {
        let admitted = finding.admitted
        switch admitted.origin {
        case .bytes(let bytes):
            let record = self.record(of: bytes, response: unconditional(), milliseconds: 0, source: admitted.source)
            return Original(
                admitted: admitted, record: record, body: bytes, outcome: .none, mayStore: true,
                generation: finding.generation)
        case .file(let path):
            return try await file(path, finding)
        case .remote(let url):
            if let original = reused(finding) { return original }
            if admitted.request.policy == .cacheOnly {
                throw PipelineError(
                    .notCached,
                    "\(admitted.displayName) is not in the cache, and the policy `cacheOnly` asks nobody else")
            }
            return try await shared(url, finding)
        }
    }

    /// The original with its body at hand: stored, or fetched again without validators.
    func withBody(_ original: Original) async throws(PipelineError) -> Original {
        if original.body != nil { return original }
        var original = original
        if let (bytes, tier) = await tiers.originalBody(original.record.digest) {
            original.body = bytes
            if original.outcome == .none { original.outcome = tier }
            return original
        }
        let again = CacheFinding(
            admitted: original.admitted, record: nil, verdict: .missing, generation: original.generation, tier: .none,
            needsBody: true)
        return try await self(again)
    }

    // MARK: Files

    private func file(_ path: String, _ finding: CacheFinding) async throws(PipelineError) -> Original {
        let limit = byteLimit
        let known = finding.record
        let source = finding.admitted.source
        let answer = await threads.run { () -> Result<(OriginalRecord, [UInt8]?), PipelineError> in
            do throws(LocalFile.Failure) {
                let file = try LocalFile.open(path, byteLimit: limit)
                let response = unconditional([HeaderField("File-Identity", file.identity)])
                if let known, known.response.fields == response.fields { return .success((known, nil)) }
                let began = ContinuousClock.now
                let bytes = try file.bytes()
                let record = self.record(
                    of: bytes, response: response, milliseconds: began.duration(to: .now).milliseconds, source: source)
                return .success((record, bytes))
            } catch {
                let code: PipelineError.Code =
                    error.isMissing ? .notFound : error.isTooLarge ? .overLimit : .fetchFailed
                return .failure(PipelineError(code, error.message, cause: error))
            }
        }
        let (record, body) = try answer.get()
        let original = Original(
            admitted: finding.admitted, record: record, body: body, outcome: .none, mayStore: true,
            generation: finding.generation)
        if body != nil { store(original) }
        return original
    }

    // MARK: Origins

    private func shared(_ url: SourceURL, _ finding: CacheFinding) async throws(PipelineError) -> Original {
        let request = finding.admitted.request
        var key = "\(finding.admitted.source)|\(url.normalised)|\(request.policy.rawValue)|\(request.storage.rawValue)"
        if finding.needsBody { key += "|body" }
        for field in request.fields { key += "|\(field.name.lowercased()):\(field.value)" }
        let (original, isCollapsed) = try await flights.value(
            for: key, priority: request.priority, finishWhenAbandoned: request.finishWhenAbandoned
        ) { () async throws(PipelineError) -> Original in
            if let stored = await storedMeanwhile(finding) { return stored }
            return try await ask(url, finding)
        }
        guard isCollapsed else { return original }
        // What may not be stored answers one request only: each waiter asks for itself.
        guard original.mayStore else { return try await ask(url, finding) }
        var mine = original
        mine.admitted = finding.admitted
        mine.isCollapsed = true
        return mine
    }

    /// A flight may have ended between the look-up and this one's start: what it stored answers this request too.
    private func storedMeanwhile(_ finding: CacheFinding) async -> Original? {
        let policy = finding.admitted.request.policy
        guard !finding.needsBody, policy == .protocol || policy == .cacheElseLoad else { return nil }
        return reused(await cache(finding.admitted))
    }

    /// The stored original where it may be used without asking anybody.
    private func reused(_ finding: CacheFinding) -> Original? {
        guard case .reuse(let isStale) = finding.verdict, let record = finding.record else { return nil }
        return Original(
            admitted: finding.admitted, record: record, body: nil, outcome: isStale ? .stale : .none, isStale: isStale,
            mayStore: true, generation: finding.generation)
    }

    private func ask(_ url: SourceURL, _ finding: CacheFinding) async throws(PipelineError) -> Original {
        let admitted = finding.admitted
        if admitted.request.delay > .zero {
            do { try await Task.sleep(for: admitted.request.delay) } catch { throw .cancelledByCaller }
        }
        admitted.events(.requesting(hadCached: finding.record != nil))
        var fields = admitted.request.fields
        if let record = finding.record, admitted.request.policy != .reload {
            fields += Validation.conditionalFields(for: record.response)
        }
        let asked = FetchRequest(url: url, fields: fields)
        let events = admitted.events
        let response: FetchedResponse
        do throws(FetchError) {
            response = try await transport.fetch(
                asked,
                onProgress: { events(.progress(received: $0, expected: $1)) })
        } catch {
            if error.code != .cancelled, error.code != .refusedAddress, let stale = stale(finding, after: .noResponse) {
                return stale
            }
            throw PipelineError(error)
        }
        return try digest(response, to: asked, finding)
    }

    /// What an answer of the origin means for the request.
    private func digest(
        _ response: FetchedResponse, to asked: FetchRequest, _ finding: CacheFinding
    ) throws(PipelineError) -> Original {
        let admitted = finding.admitted
        if response.status == 304, let record = finding.record,
            Validation.identifies(record.response, notModified: response.fields)
        {
            var freshened = record
            freshened.response = Validation.freshened(
                record.response, by: response.fields, requestTime: response.requestTime,
                responseTime: response.responseTime)
            let original = Original(
                admitted: admitted, record: freshened, body: nil, outcome: .revalidated, mayStore: true,
                generation: finding.generation, fetchMilliseconds: response.milliseconds)
            store.freshen(original)
            return original
        }
        guard response.status == 200 else {
            if let stale = stale(finding, after: .status(response.status)) { return stale }
            let name = admitted.displayName
            if response.status == 404 || response.status == 410 {
                throw PipelineError(.notFound, "\(name): the origin answered \(response.status); check the URL")
            }
            throw PipelineError(
                .fetchFailed, "\(name): the origin answered \(response.status), and an image is only made from a 200")
        }
        try checkType(response, admitted)
        let stored = StoredResponse(
            status: response.status, fields: response.fields, requestTime: response.requestTime,
            responseTime: response.responseTime,
            selecting: Variation.selectingFields(of: response.fields, requestFields: admitted.request.fields) ?? [:])
        let original = Original(
            admitted: admitted,
            record: record(
                of: response.body, response: stored, milliseconds: response.milliseconds, source: admitted.source),
            body: response.body, outcome: .network,
            mayStore: Storability.mayStore(
                response: stored, requestFields: asked.fields, configuration: caching),
            generation: finding.generation, fetchMilliseconds: response.milliseconds)
        store(original)
        return original
    }

    private func stale(_ finding: CacheFinding, after failure: OriginFailure) -> Original? {
        guard let record = finding.record,
            Reuse.mayServeStale(record.response, after: failure, now: now(), configuration: caching)
        else { return nil }
        return Original(
            admitted: finding.admitted, record: record, body: nil, outcome: .stale, isStale: true, mayStore: true,
            generation: finding.generation)
    }

    private func checkType(_ response: FetchedResponse, _ admitted: AdmittedRequest) throws(PipelineError) {
        let values = response.fields.filter { $0.name.lowercased() == "content-type" }.map(\.value)
        guard let value = values.last else { return }
        let type = value.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        let isAccepted = acceptedTypes.contains { accepted in
            accepted == "*/*" || accepted == type
                || (accepted.hasSuffix("/*") && type.hasPrefix(accepted.dropLast()))
        }
        guard isAccepted else {
            throw PipelineError(
                .notAnImage,
                "\(admitted.displayName): the origin says it is \(type), not an image; "
                    + "add the type to `acceptedTypes` if it is one")
        }
    }

    private func record(
        of bytes: [UInt8], response: StoredResponse, milliseconds: Double, source: String
    ) -> OriginalRecord {
        OriginalRecord(
            source: source, response: response, digest: sha256Hex(bytes), length: bytes.count,
            // A body that is no image is stored like any other; asking for a variant of it then says so.
            header: try? ImageHeader.probe(bytes), fetchMilliseconds: milliseconds)
    }

    private func unconditional(_ fields: [HeaderField] = []) -> StoredResponse {
        StoredResponse(status: 200, fields: fields, requestTime: now(), responseTime: now())
    }
}

extension PipelineError {
    /// A transfer's failure; its message already names the URL without credentials.
    init(_ error: FetchError) {
        let code: Code =
            switch error.code {
            case .refusedAddress: .sourceRefused
            case .connectTimeout, .timeout, .stalled: .fetchTimedOut
            case .tooLarge: .overLimit
            case .cancelled: .cancelled
            default: .fetchFailed
            }
        self.init(code, error.description, cause: error)
    }
}
