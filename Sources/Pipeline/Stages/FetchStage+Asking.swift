import HTTPCaching
import PipelineCaching
import PipelineFetching
import Variants

/// Asking the origin, and interpreting its answers.
extension FetchStage {
    /// One exchange with the origin: conditional on every stored response it might confirm, otherwise unconditional.
    func ask(
        _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> FetchedOriginal {
        // If a response is stored, it and its variants may turn out to be still valid.
        if admitted.purpose == .image, admitted.request.recipe != nil,
            finding.records.isEmpty || finding.missingBody != nil
        {
            willRender()
        }
        let candidates = candidates(of: finding, admitted)
        let forwarded = finding.record == nil ? admitted.conditions : []
        // A client's conditions could contradict ours, which are left out: the answer is the client's alone.
        let fields = forwarded.isEmpty ? confirming(candidates, finding, admitted) : admitted.request.fields + forwarded
        let (asked, response) = try await send(fields, finding, admitted)
        guard case .answer(let response) = response else { return try response.inPlace() }
        if !forwarded.isEmpty, [206, 304, 412, 416].contains(response.status) {
            return try await passed(response, finding, admitted)
        }
        if response.status != 304 { return try await digested(response, to: asked, finding, admitted) }
        if forwarded.isEmpty, let fetched = await freshened(response, to: asked, finding, admitted, candidates) {
            return fetched
        }
        // The 304 matches nothing we have. Asked without validators, the origin must send a complete response.
        let (plainly, second) = try await send(admitted.request.fields, finding, admitted)
        guard case .answer(let whole) = second else { return try second.inPlace() }
        guard whole.status != 304 else {
            let error = PipelineError(
                .fetchFailed, "\(admitted.displayName): the origin answers 304 to requests without a condition")
            return try failed(error, .noResponse, finding, admitted).inPlace()
        }
        return try await digested(whole, to: plainly, finding, admitted)
    }

    /// The fields a request for the finding would carry, without those the transport adds.
    func requestFields(for finding: CacheFinding, _ admitted: AdmittedRequest) -> [HeaderField] {
        confirming(candidates(of: finding, admitted), finding, admitted)
    }

    /// The outcome of sending: a response to process, or what answers in its place.
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
        asked.acceptsFile = tiers.takesFiles(admitted.request.storage)
        asked.hasForeignCondition = finding.record == nil && !admitted.conditions.isEmpty
        asked.onInterim = admitted.onInterim
        asked.method = admitted.method
        asked.body = admitted.body
        asked.traceFields = traceFields()
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
            // The origin has not failed, so that nothing is remembered of it. Whether a stale response will do is for each
            // waiter to say (`ImagePipeline.fetchedOrStale`), as a more urgent one may ask again.
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
            return (asked, failed(PipelineError(error), .noResponse, finding, admitted))
        }
    }

    /// Remembers a failure, and hides it behind a stale response if that is allowed.
    private func failed(
        _ error: PipelineError, _ cause: OriginFailure, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) -> Reply {
        let keys = failureKeys(admitted)
        _ = failures.note(
            cause == .noResponse ? keys[0] : keys[1], error, cause, isForVariant: admitted.isForVariant,
            now: now())
        return stale(finding, admitted, after: cause).map { .stale($0) } ?? .failure(error)
    }

    /// The stored response, if it may stand in for an origin that failed.
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

    // MARK: Changing

    /// Sends a request that may change state, and invalidates what is stored for the URLs it changed (RFC 9111 §4.4).
    func change(_ admitted: AdmittedRequest) async throws(PipelineError) -> FetchedOriginal {
        let url = admitted.url
        guard !admitted.transport.isLocal else {
            throw PipelineError(.invalidSource, "\(admitted.displayName): only an http(s) URL can be sent a request")
        }
        var finding = CacheFinding(
            verdict: .missing, forward: .method, marks: await tiers.currentMarks(), tier: .none)
        let (asked, reply) = try await send(admitted.request.fields + admitted.conditions, finding, admitted)
        let target = Invalidation.Target(url)
        guard case .answer(let response) = reply else {
            // The request may have reached the origin and succeeded, although no response came back.
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
        // If anything was purged in the meantime, a later request may have changed the resource again.
        let isLatest = await tiers.currentMarks() == finding.marks
        await invalidate(changed, target, admitted)
        let stored = StoredResponse(
            status: response.status, fields: response.fields, requestTime: response.requestTime,
            responseTime: response.responseTime)
        let answersLater = Invalidation.answersLaterRequests(
            stored, to: admitted.method, at: target, configuration: caching, resolving: resolving)
        guard answersLater, isLatest else { return try await passed(response, finding, admitted, refusal: "method") }
        finding.marks = tiers.marks()
        return try await digested(response, to: asked, finding, admitted)
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

    /// Whether a failed request may have reached the origin nevertheless.
    private static func mayHaveArrived(_ error: PipelineError) -> Bool {
        if error.code == .overloaded { return false }
        guard let cause = error.cause as? FetchError else { return true }
        let before: Set<FetchError.Code> = [
            .refusedAddress, .refusedSource, .circuitOpen, .unresolvable, .unreachable, .connectTimeout, .tls,
        ]
        return !before.contains(cause.code)
    }

    // MARK: Validating

    /// Records that the origin may confirm, the one the request selects first (RFC 9111 §4.3.1).
    private func candidates(of finding: CacheFinding, _ admitted: AdmittedRequest) -> [OriginalRecord] {
        guard admitted.policy != .reload, finding.missingBody == nil else { return [] }
        let selected = finding.record.map { [$0] } ?? []
        let others = finding.records.filter { $0 != finding.record && $0.response.isOK }
            .sorted { $0.response.responseTime > $1.response.responseTime }
        return (selected + others).filter { Validation.hasValidator($0.response) }
    }

    /// The record that a 304 identifies, freshened by it (RFC 9111 §4.3.4); nil if it identifies none we can use.
    private func freshened(
        _ response: FetchedResponse, to asked: FetchRequest, _ finding: CacheFinding, _ admitted: AdmittedRequest,
        _ candidates: [OriginalRecord]
    ) async -> FetchedOriginal? {
        let finalURL = Self.finalURL(of: response)
        let named = self.named(candidates, by: response, finding).filter { record in
            // Validators apply to one URL. By giving a source ID, the caller declares all of its URLs to be one.
            record.finalURL == finalURL || admitted.request.sourceID != nil
        }
        guard let record = named.first else { return nil }
        var body = record == finding.record ? finding.body : nil
        if admitted.purpose == .original, body == nil {
            body = await tiers.originalBody(record.digest, of: record)?.body
            if body == nil { return nil }
        }
        var new = record
        new.response = freshened(record.response, by: response, asked)
        let own = Storability.refusal(response: new.response, requestFields: [], configuration: caching)?.rawValue
        var selecting = Redirects.selectingFields(
            of: new.response.fields, after: response.redirectResponses, requestFields: admitted.request.fields)
        if selecting == nil { selecting = [:] }
        new.response.selecting = selecting ?? [:]
        new.isOnTrial = record.isOnTrial
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
                other.response = freshened(other.response, by: response, asked)
                others.append(other)
            }
            change = .freshen(record, others: others, isSelected: record == finding.record)
        }
        return FetchedOriginal(original: original, change: change)
    }

    /// The fields of a conditional request that lets the origin confirm the candidates.
    private func confirming(
        _ candidates: [OriginalRecord], _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) -> [HeaderField] {
        Validation.requestFields(
            admitted.request.fields, validating: candidates.map(\.response),
            selected: candidates.firstIndex { $0 == finding.record })
    }

    /// The candidates that a 304 identifies, the one the request selects first.
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

    private func freshened(
        _ stored: StoredResponse, by response: FetchedResponse, _ asked: FetchRequest
    ) -> StoredResponse {
        var new = Validation.freshened(
            stored, by: response.fields, requestTime: response.requestTime, responseTime: response.responseTime,
            configuration: caching)
        new.assignedLifetime = nil
        new.lifetimeLimit = Redirects.lifetimeLimit(
            of: new, after: response.redirectResponses, configuration: caching)
        freshness[HostOrigin(response.finalURL)]?.apply(to: &new, caching)
        return new
    }

    // MARK: Complete responses

    /// Makes an original of a response other than a 304, and stores it if that is allowed.
    private func digested(
        _ response: FetchedResponse, to asked: FetchRequest, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> FetchedOriginal {
        let isFailing = response.status >= 400
        var isRemembered = false
        // An expired signature, say: other URLs of the same name may be answered.
        let isURLRefused = [401, 403].contains(response.status) && admitted.isOneOfMany
        if isURLRefused {
            if var stale = stale(finding, admitted, after: .unusable) {
                stale.forwardStatus = response.status
                stale.refusedURL = admitted.url.normalised
                return FetchedOriginal(original: stale)
            }
        } else if isFailing {
            let cause = OriginFailure.status(response.status)
            let error = Self.error(status: response.status, response.problem, admitted)
            isRemembered = failures.note(
                failureKeys(admitted)[1], error, cause, isForVariant: admitted.isForVariant, now: now())
            if let stale = stale(finding, admitted, after: cause) { return FetchedOriginal(original: stale) }
        }
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
        if isRemembered, finding.record.map({ $0.response.status >= 400 }) ?? true {
            remember(&stored, &refusal)
        }
        var original = Original(
            record: try await record(of: response, as: stored, admitted, finalURL: Self.finalURL(of: response)),
            body: response.content, outcome: .network, mayStore: refusal == nil, refusal: refusal?.rawValue,
            marks: finding.marks, fetchMilliseconds: response.milliseconds, forward: finding.forward)
        original.received = response.fields
        original.problem = response.problem
        if isURLRefused {
            original.refusedURL = admitted.url.normalised
            original.refuse("status")
        }
        if let error = await unusable(original, admitted) {
            noteUnusable(error, admitted)
            if let stale = stale(finding, admitted, after: .unusable) { return FetchedOriginal(original: stale) }
        } else if !isFailing {
            // Whether a variant can be made of a picture, a render shows.
            let isProven = admitted.purpose == .original && !original.record.isUnusable
            failures.clear(isProven ? failureKeys(admitted) : [failureKeys(admitted)[0]])
        }
        if original.mayStore, (200..<300).contains(response.status), unacceptedType(of: original.record) != nil {
            original.refuse("type")
        }
        let isFinal = (200..<300).contains(response.status) || response.status == 404 || response.status == 410
        var replaced = isFinal ? finding.record : nil
        if original.record.response.isOK {
            original.record.isOnTrial = isAnotherPicture(than: original.record, finding)
            // Nothing but a picture that can be decoded removes one; whether it can, a render shows.
            let isInDoubt = admitted.purpose == .image && !original.mayStore
            if isInDoubt || original.record.isUnusable || unacceptedType(of: original.record) != nil,
                replaced?.header != nil
            {
                replaced = nil
            }
        }
        if original.mayStore { return FetchedOriginal(original: original, change: .store(replacing: replaced)) }
        // The response supersedes the stored one even if it may not be stored itself, unless only this request's own
        // fields forbid storing it.
        let own = Storability.refusal(response: stored, requestFields: [], configuration: caching)
        let supersedes = own != nil || refusal == nil
        return FetchedOriginal(original: original, change: supersedes ? replaced.map { .forget($0) } : nil)
    }

    /// Whether a picture with other bytes is stored where the record would be.
    private func isAnotherPicture(than record: OriginalRecord, _ finding: CacheFinding) -> Bool {
        finding.records.contains { stored in
            !stored.isOnTrial && !stored.isUnusable && stored.response.isOK
                && stored.response.selecting == record.response.selecting && stored.digest != record.digest
        }
    }

    /// Gives a failure without a lifetime of its own the configured one, once there were enough of them.
    private func remember(_ stored: inout StoredResponse, _ refusal: inout Storability.Refusal?) {
        // A response that depends on the requester must not answer others from the store.
        guard !Self.personalStatuses.contains(stored.status), let age = caching.errorMaxAge,
            refusal == nil || refusal == .noLifetime
        else { return }
        let basis = Freshness.lifetime(of: stored, configuration: caching).basis
        guard basis == .none || basis == .heuristic else { return }
        stored.assignedLifetime = Double(age) + Age.current(of: stored, now: stored.responseTime)
        refusal = nil
    }

    /// The response to a client's own conditions or range, or to another method than GET: for this request alone.
    private func passed(
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
        response.redirects.isEmpty ? nil : response.finalURL.normalised
    }
}

extension Invalidation.Target {
    fileprivate init(_ url: SourceURL) { self.init(url: url.normalised, origin: url.origin) }
}

extension FetchedResponse {
    /// The body, wherever it is.
    fileprivate var content: EntryBody { file.map(EntryBody.file) ?? .bytes(body) }
}
