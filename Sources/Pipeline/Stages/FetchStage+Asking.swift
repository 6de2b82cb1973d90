import HTTPCaching
import PipelineCaching
import PipelineFetching
import Variants

/// Sends requests to the origin and interprets its responses.
extension FetchStage {
    /// Makes one exchange with the origin. The request is conditional on every stored response that the origin might
    /// confirm. If no such response is stored, the request is unconditional.
    func ask(
        _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> FetchedOriginal {
        // If a response is stored, it may still be valid. Its variants can then be used without a render.
        if admitted.isForVariant,
            finding.records.isEmpty || finding.missingBody != nil
        {
            willRender()
        }
        let candidates = candidates(of: finding, admitted)
        let forwarded = finding.record == nil ? admitted.conditions : []
        // The client's conditions could contradict our own. Send only the client's conditions. The response then
        // answers only this client.
        let fields = forwarded.isEmpty ? confirming(candidates, finding, admitted) : admitted.request.fields + forwarded
        let (asked, response) = try await send(fields, finding, admitted)
        guard case .answer(let response) = response else { return try response.inPlace() }
        if !forwarded.isEmpty, [206, 304, 412, 416].contains(response.status) {
            return try await makeUnstoredOriginal(response, finding, admitted)
        }
        if response.status != 304 { return try await makeOriginal(response, to: asked, finding, admitted) }
        if forwarded.isEmpty, let fetched = await confirmed(by: response, to: asked, finding, admitted, candidates) {
            return fetched
        }
        // The 304 identifies no stored response. Without validators, the origin must send a complete response.
        let (plainly, second) = try await send(admitted.request.fields, finding, admitted)
        guard case .answer(let whole) = second else { return try second.inPlace() }
        guard whole.status != 304 else {
            let error = PipelineError(
                .fetchFailed, "\(admitted.displayName): the origin answered 304 to an unconditional request")
            return try failed(error, .noResponse, finding, admitted).inPlace()
        }
        return try await makeOriginal(whole, to: plainly, finding, admitted)
    }

    /// Returns the fields of a request for the finding, without the fields that the transport adds.
    func requestFields(for finding: CacheFinding, _ admitted: AdmittedRequest) -> [HeaderField] {
        confirming(candidates(of: finding, admitted), finding, admitted)
    }

    /// The result of sending a request: a response to process, or a stored response or error to return instead.
    private enum Reply {
        case answer(FetchedResponse)
        case stale(Original)
        case failure(PipelineError)

        func inPlace() throws(PipelineError) -> FetchedOriginal {
            switch self {
            case .stale(let original): return FetchedOriginal(original: original)
            case .failure(let error): throw error
            case .answer: throw PipelineError(.fetchFailed, "internal error: a response was not processed")
            }
        }
    }

    private func send(
        _ fields: [HeaderField], _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> (FetchRequest, Reply) {
        var asked = FetchRequest(url: admitted.url, fields: fields)
        asked.followsRedirects = admitted.followsRedirects
        asked.maxRedirects = finding.isStored ? nil : admitted.request.maxRedirects
        asked.acceptsFile = tiers.takesFiles(admitted.request.storage)
        asked.hasForeignCondition = finding.record == nil && !admitted.conditions.isEmpty
        asked.onInterim = admitted.onInterim
        asked.method = admitted.method
        asked.body = admitted.body
        asked.traceFields = traceFields()
        // Requests that change something at the origin carry only the credentials of their client. The signature of a
        // request to a bucket covers its fields, so a hook must not change them.
        if admitted.method == "GET", admitted.url.scheme != "s3" { asked.willSend = willSend }
        let answer: Result<FetchedResponse, FetchError>
        do throws(PipelineError) {
            let url = admitted.url
            answer = try await backlog.run(admitted.request.priority, of: url.origin, in: url.network) { [asked] in
                do throws(FetchError) {
                    return .success(try await admitted.transport.fetch(asked, onProgress: admitted.onProgress))
                } catch {
                    return .failure(error)
                }
            }
        } catch {
            // The origin has not failed, so no failure is remembered. Each waiter decides whether a stale response may
            // be used (`ImagePipeline.fetchedOrStale`), because a more urgent waiter may try again.
            return (asked, .failure(error))
        }
        switch answer {
        case .success(var response):
            let own = freshness[HostOrigin(response.finalURL)]
            response.fields = own?.fields(response.fields, caching) ?? response.fields
            for (index, url) in zip(response.redirectResponses.indices, response.redirects) {
                freshness[HostOrigin(url)]?.apply(to: &response.redirectResponses[index], isOnTheWay: true, caching)
            }
            return (asked, .answer(response))
        case .failure(let error):
            // A stored response cannot answer a request that changes state.
            if asked.method != "GET" { return (asked, .failure(PipelineError(error))) }
            let isOurs = [.cancelled, .refusedAddress, .refusedSource].contains(error.code)
            if isOurs { throw PipelineError(error) }
            // The program has failed rather than the origin, so nothing is remembered.
            if error.code == .notSent {
                return (
                    asked,
                    stale(finding, admitted, after: .noResponse).map { .stale($0) } ?? .failure(PipelineError(error))
                )
            }
            return (asked, failed(PipelineError(error), .noResponse, finding, admitted))
        }
    }

    /// Remembers a failure, and replaces it with a stale response if that is allowed.
    private func failed(
        _ error: PipelineError, _ cause: OriginFailure, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) -> Reply {
        let keys = failureKeys(admitted)
        let own = (error.cause as? FetchError)?.code == .tooManyRedirects ? keys.dropFirst(2).first : nil
        _ = failures.note(
            own ?? (cause == .noResponse ? keys[0] : keys[1]), error, cause, isForVariant: admitted.isForVariant,
            now: now())
        return stale(finding, admitted, after: cause).map { .stale($0) } ?? .failure(error)
    }

    /// Returns the stored response, if it may be served after the origin failed.
    func stale(
        _ finding: CacheFinding, _ admitted: AdmittedRequest, after failure: OriginFailure
    ) -> Original? {
        guard let record = finding.record, admitted.policy != .reload,
            admitted.purpose == .original || record.response.isOK,
            Reuse.mayServeStale(
                record.response, after: failure, now: now(), configuration: caching,
                directives: admitted.directives)
        else { return nil }
        var original = Original(
            record: record, body: finding.body, outcome: .stale, isStale: true, mayStore: true, marks: finding.marks,
            forward: finding.forward)
        if case .status(let status) = failure { original.forwardStatus = status }
        return original
    }

    // MARK: Unsafe methods

    /// Sends a request that may change state, and invalidates the stored responses for the URLs that it changed
    /// (RFC 9111 §4.4).
    func change(_ admitted: AdmittedRequest) async throws(PipelineError) -> FetchedOriginal {
        let url = admitted.url
        var finding = CacheFinding(
            verdict: .missing, forward: .method, marks: await tiers.currentMarks(), tier: nil)
        let (asked, reply) = try await send(admitted.request.fields + admitted.conditions, finding, admitted)
        let target = Invalidation.Target(url)
        guard case .answer(let response) = reply else {
            // The request may have reached the origin and succeeded although no response arrived.
            if case .failure(let error) = reply, !Invalidation.isSafe(admitted.method), Self.mayHaveArrived(error) {
                await invalidate([target], target, admitted)
            }
            return try reply.inPlace()
        }
        let resolving = { (reference: String) in
            (try? url.resolving(FieldSyntax.percentEncoded(reference))).map { Invalidation.Target($0) }
        }
        let changed = Invalidation.targets(
            after: admitted.method, to: target, status: response.status, fields: response.fields, resolving: resolving)
        // If anything has been purged in the meantime, a later request may have changed the resource again.
        let isLatest = await tiers.currentMarks() == finding.marks
        await invalidate(changed, target, admitted)
        let stored = StoredResponse(
            status: response.status, fields: response.fields, requestTime: response.requestTime,
            responseTime: response.responseTime)
        let answersLater = Invalidation.answersLaterRequests(
            stored, to: admitted.method, at: target, configuration: caching, resolving: resolving)
        guard answersLater, isLatest else {
            return try await makeUnstoredOriginal(response, finding, admitted, refusal: "method")
        }
        finding.marks = tiers.marks()
        return try await makeOriginal(response, to: asked, finding, admitted)
    }

    private func invalidate(
        _ changed: [Invalidation.Target], _ target: Invalidation.Target, _ admitted: AdmittedRequest
    ) async {
        for changed in changed {
            let source = changed == target ? admitted.source : changed.url
            await purger.invalidate(source)
            failures.clear(beginning: failureKeys(source))
        }
    }

    /// Whether a failed request may still have reached the origin.
    private static func mayHaveArrived(_ error: PipelineError) -> Bool {
        if error.code == .overloaded { return false }
        guard let cause = error.cause as? FetchError else { return true }
        let before: Set<FetchError.Code> = [
            .refusedAddress, .refusedSource, .circuitOpen, .unresolvable, .unreachable, .connectTimeout, .tls,
        ]
        return !before.contains(cause.code)
    }

    // MARK: Validating

    /// Returns the records that the origin may confirm. The record that the request selects comes first (RFC 9111
    /// §4.3.1).
    private func candidates(of finding: CacheFinding, _ admitted: AdmittedRequest) -> [OriginalRecord] {
        guard admitted.policy != .reload, finding.missingBody == nil else { return [] }
        let selected = finding.record.map { [$0] } ?? []
        let others = finding.records.filter { $0 != finding.record && $0.response.isOK }
            .sorted { $0.response.responseTime > $1.response.responseTime }
        return (selected + others).filter { Validation.hasValidator($0.response) }
    }

    /// Returns the record that a 304 identifies, freshened by the 304 (RFC 9111 §4.3.4). Returns nil if it identifies
    /// no usable record.
    private func confirmed(
        by response: FetchedResponse, to asked: FetchRequest, _ finding: CacheFinding, _ admitted: AdmittedRequest,
        _ candidates: [OriginalRecord]
    ) async -> FetchedOriginal? {
        let finalURL = Self.finalURL(of: response)
        let named = self.named(candidates, by: response, finding).filter { record in
            // Validators apply to a single URL. With a source ID, the caller declares that all URLs with this ID are
            // equivalent.
            record.finalURL == finalURL || admitted.request.sourceID != nil
        }
        guard let record = named.first else { return nil }
        var body = record == finding.record ? finding.body : nil
        if admitted.purpose == .original, body == nil {
            body = await tiers.originalBody(record.digest, of: (record, finding.marks))?.body
            if body == nil { return nil }
        }
        var new = record
        new.response = updatedResponse(record.response, by: response, asked)
        let own = Storability.refusal(response: new.response, requestFields: [], configuration: caching)?.rawValue
        var selecting = Redirects.selectingFields(
            of: new.response.fields, after: response.redirectResponses, requestFields: admitted.request.fields)
        if selecting == nil { selecting = [:] }
        new.response.selecting = selecting ?? [:]
        let refusal =
            Storability.refusal(response: new.response, requestFields: asked.fields, configuration: caching)
            ?? Redirects.refusal(
                response.redirectResponses, requestFields: asked.fields, configuration: caching)
        let original = Original(
            record: new, body: body, outcome: .revalidated, mayStore: refusal == nil, refusal: refusal?.rawValue,
            marks: finding.marks, fetchMilliseconds: response.milliseconds, forward: finding.forward,
            forwardStatus: 304)
        failures.clear(failureKeys(admitted))
        var change: FetchedOriginal.Change?
        if own != nil {
            change = .forget(record)
        } else if refusal == nil {
            let tag = response.fields.first("etag")
            let isStrong = tag.map { !$0.hasPrefix("W/") } ?? false
            var others: [OriginalRecord] = []
            for var other in named where isStrong && other != record {
                other.response = updatedResponse(other.response, by: response, asked)
                others.append(other)
            }
            change = .freshen(record, others: others, isSelected: record == finding.record)
        }
        return FetchedOriginal(original: original, change: change)
    }

    /// Returns the fields of a request that asks the origin to confirm one of the candidates.
    private func confirming(
        _ candidates: [OriginalRecord], _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) -> [HeaderField] {
        Validation.requestFields(
            admitted.request.fields, validating: candidates.map(\.response),
            selected: candidates.firstIndex { $0 == finding.record })
    }

    /// Returns the candidates that a 304 identifies. The record that the request selects comes first.
    private func named(
        _ candidates: [OriginalRecord], by response: FetchedResponse, _ finding: CacheFinding
    ) -> [OriginalRecord] {
        let selected = candidates.firstIndex { $0 == finding.record }
        if let selected, response.fields.first("etag") != nil || response.fields.first("last-modified") != nil,
            Validation.identifies(candidates[selected].response, notModified: response.fields)
        {
            let others = candidates.filter {
                $0 != finding.record && Validation.identifies($0.response, notModified: response.fields)
            }
            return [candidates[selected]] + others
        }
        return Validation.identified(
            among: candidates.map(\.response), notModified: response.fields, selected: selected
        ).map { candidates[$0] }
    }

    private func updatedResponse(
        _ stored: StoredResponse, by response: FetchedResponse, _ asked: FetchRequest
    ) -> StoredResponse {
        var new = Validation.freshenedResponse(
            stored, by: response.fields, requestTime: response.requestTime, responseTime: response.responseTime,
            configuration: caching)
        new.assignedLifetime = nil
        new.lifetimeLimit = Redirects.lifetimeLimit(
            of: new, after: response.redirectResponses, configuration: caching)
        freshness[HostOrigin(response.finalURL)]?.apply(to: &new, caching)
        return new
    }

    // MARK: Complete responses

    /// The meaning of a complete response for the source.
    private enum Meaning {
        case answer
        /// An error status, 400 or higher.
        case failure
        /// The origin refuses this URL, for example because its signature has expired. Other URLs have the same name.
        case refusal
    }

    private func meaning(of response: FetchedResponse, _ admitted: AdmittedRequest) -> Meaning {
        if [401, 403].contains(response.status), admitted.isOneOfMany { return .refusal }
        return response.status >= 400 ? .failure : .answer
    }

    /// Creates an original from a response other than a 304, and decides what to store.
    private func makeOriginal(
        _ response: FetchedResponse, to asked: FetchRequest, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> FetchedOriginal {
        let meaning = meaning(of: response, admitted)
        let isRemembered = meaning == .failure && noteFailure(response, admitted)
        let cause = meaning == .refusal ? OriginFailure.unusable : .status(response.status)
        if meaning != .answer, var stale = stale(finding, admitted, after: cause) {
            stale.forwardStatus = response.status
            if meaning == .refusal { stale.refusedURL = admitted.url.normalized }
            return FetchedOriginal(original: stale)
        }
        let (stored, refusal) = storable(
            response, to: asked, isRemembered: isRemembered && finding.record?.response.isError != false, admitted)
        var original = Original(
            record: try await record(of: response, as: stored, admitted, finalURL: Self.finalURL(of: response)),
            body: response.content, outcome: .network, mayStore: refusal == nil, refusal: refusal?.rawValue,
            marks: finding.marks, fetchMilliseconds: response.milliseconds, forward: finding.forward)
        original.received = response.fields
        original.problem = response.problem
        if meaning == .refusal {
            original.refusedURL = admitted.url.normalized
            original.refuse("status")
        }
        if let error = await unusable(original, admitted) {
            noteUnusable(error, admitted)
            if let stale = stale(finding, admitted, after: .unusable) { return FetchedOriginal(original: stale) }
        } else if meaning == .answer {
            // Until a render has succeeded, it is unknown whether a picture can be decoded.
            let isProven = admitted.purpose == .original && !original.record.isUnusable
            let keys = failureKeys(admitted)
            failures.clear(isProven ? keys : [keys[0]] + keys.dropFirst(2))
        }
        if original.mayStore, stored.isSuccess, unacceptedType(of: original.record) != nil { original.refuse("type") }
        original.record.isProvisional = stored.isOK && isAnotherPicture(than: original.record, finding)
        // The response supersedes the stored one even if it may not be stored itself, unless only the fields of this
        // request forbid storing it.
        let supersedes =
            refusal == nil || Storability.refusal(response: stored, requestFields: [], configuration: caching) != nil
        return FetchedOriginal(
            original: original, change: change(by: original, supersedes: supersedes, finding, admitted))
    }

    /// Remembers a failure of the origin.
    ///
    /// - Returns: whether there were enough failures to answer other requests with this one.
    private func noteFailure(_ response: FetchedResponse, _ admitted: AdmittedRequest) -> Bool {
        failures.note(
            failureKeys(admitted)[1], Self.error(status: response.status, response.problem, admitted),
            .status(response.status), isForVariant: admitted.isForVariant, now: now())
    }

    /// Returns the response to store, and the reason if it may not be stored.
    ///
    /// - Parameter isRemembered: whether the response is a failure that answers other requests, with the configured
    ///   lifetime.
    private func storable(
        _ response: FetchedResponse, to asked: FetchRequest, isRemembered: Bool, _ admitted: AdmittedRequest
    ) -> (StoredResponse, Storability.Refusal?) {
        let selecting = Redirects.selectingFields(
            of: response.fields, after: response.redirectResponses, requestFields: admitted.request.fields)
        var stored = StoredResponse(
            status: response.status, fields: Storability.storedFields(of: response.fields, configuration: caching),
            requestTime: response.requestTime, responseTime: response.responseTime, selecting: selecting ?? [:])
        stored.lifetimeLimit = Redirects.lifetimeLimit(
            of: stored, after: response.redirectResponses, configuration: caching)
        freshness[HostOrigin(response.finalURL)]?.apply(to: &stored, caching)
        var refusal =
            Storability.refusal(response: stored, requestFields: asked.fields, configuration: caching)
            ?? Redirects.refusal(response.redirectResponses, requestFields: asked.fields, configuration: caching)
        if isRemembered { remember(&stored, &refusal) }
        return (stored, refusal)
    }

    /// Returns the change to the tiers that a response causes.
    ///
    /// - Parameter supersedes: whether the response replaces the stored one even if it may not be stored itself.
    private func change(
        by original: Original, supersedes: Bool, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) -> FetchedOriginal.Change? {
        let record = original.record
        var replaced = record.response.isSuccess || record.response.isGone ? finding.record : nil
        // A picture may be replaced only by a response that can be decoded. This is unknown until a render has
        // succeeded.
        let isInDoubt = admitted.purpose == .image && !original.mayStore
        if record.response.isOK, replaced?.header != nil,
            isInDoubt || record.isUnusable || unacceptedType(of: record) != nil
        {
            replaced = nil
        }
        if original.mayStore { return .store(replacing: replaced) }
        return supersedes ? replaced.map { .forget($0) } : nil
    }

    /// Whether a picture with different bytes is stored for the same selecting fields.
    private func isAnotherPicture(than record: OriginalRecord, _ finding: CacheFinding) -> Bool {
        finding.records.contains { stored in
            !stored.isProvisional && !stored.isUnusable && stored.response.isOK
                && stored.response.selecting == record.response.selecting && stored.digest != record.digest
        }
    }

    /// Assigns the configured lifetime to a failure that declares none.
    private func remember(_ stored: inout StoredResponse, _ refusal: inout Storability.Refusal?) {
        // A response that depends on the client must not answer other clients from the store.
        guard !Self.personalStatuses.contains(stored.status), let age = caching.errorMaxAge,
            refusal == nil || refusal == .noLifetime
        else { return }
        let basis = Freshness.lifetime(of: stored, configuration: caching).basis
        guard basis == .none || basis == .heuristic else { return }
        stored.assignedLifetime = age.inSeconds + Age.current(of: stored, now: stored.responseTime)
        refusal = nil
    }

    /// Creates an original from the response to a client's own conditions or range, or to a method other than GET. It
    /// answers only this request.
    private func makeUnstoredOriginal(
        _ response: FetchedResponse, _ finding: CacheFinding, _ admitted: AdmittedRequest,
        refusal: String = Storability.Refusal.conditional.rawValue
    ) async throws(PipelineError) -> FetchedOriginal {
        let stored = StoredResponse(
            status: response.status, fields: response.fields, requestTime: response.requestTime,
            responseTime: response.responseTime)
        return FetchedOriginal(
            original: Original(
                record: try await record(of: response, as: stored, admitted), body: response.content,
                outcome: .network, mayStore: false, refusal: refusal, marks: finding.marks,
                fetchMilliseconds: response.milliseconds, forward: finding.forward))
    }

    private static func finalURL(of response: FetchedResponse) -> String? {
        response.redirects.isEmpty ? nil : response.finalURL.normalized
    }
}

extension Invalidation.Target {
    fileprivate init(_ url: SourceURL) { self.init(url: url.normalized, origin: url.origin) }
}

extension StoredResponse {
    fileprivate var isSuccess: Bool { (200..<300).contains(status) }
    fileprivate var isError: Bool { status >= 400 }
    fileprivate var isGone: Bool { status == 404 || status == 410 }
}

extension FetchedResponse {
    /// The body, in memory or in a file.
    fileprivate var content: EntryBody { file.map(EntryBody.file) ?? .bytes(body) }
}
