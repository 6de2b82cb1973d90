import PipelineCaching
import Variants

extension ImagePipeline {
    /// Begins a load, and returns at once. What memory holds, and may answer without asking the origin, it has already.
    public func load(_ request: ImageRequest) -> LoadTask { load(request, showsStale: true) }

    /// - Parameter showsStale: whether a stale picture is shown first, and a better one waited for; false to get what
    ///   `respond(to:)` answers.
    package func load(_ request: ImageRequest, showsStale: Bool) -> LoadTask {
        if let ended = loadFromMemory(request) { return ended }
        let load = LoadTask(request)
        load.begin { [self] (request, tell) async throws(PipelineError) in
            try await respond(to: request, telling: tell, showsStale: showsStale)
        }
        return load
    }

    /// A load that has ended, if memory can answer it.
    func loadFromMemory(_ request: ImageRequest) -> LoadTask? {
        guard let found = inMemory(request), found.isFinal else { return nil }
        return LoadTask(request, found.response)
    }

    /// The picture that memory holds for a request, fresh or not (`ImageResponse.isStale` says which): for what has to be
    /// shown now, before or instead of a load.
    ///
    /// It neither suspends nor begins anything, and asks nothing behind memory: no cache folder, no origin, no file. So what
    /// was made of a file counts as stale. nil if memory does not hold the picture, for bytes that come with the request, and
    /// for recipes that name masks or overlays.
    public func cachedImage(for request: ImageRequest) -> ImageResponse? { inMemory(request)?.response }

    /// - Returns: `isFinal` says whether `respond(to:)` would answer the same, and begin nothing.
    private func inMemory(_ request: ImageRequest) -> (response: ImageResponse, isFinal: Bool)? {
        let began = observe.start
        guard let admitted = try? admit.atOnce(request), let finding = lookUp.inMemory(admitted),
            let original = finding.reusable ?? lookUp.shown(finding),
            request.recipe == nil || !original.record.isOnTrial,
            (try? fetch.check(original, admitted)) != nil, let found = inMemory(original, admitted)
        else { return nil }
        observe.hit(of: admitted.source, since: began)
        let isFinal = if case .reuse = finding.verdict { true } else { false }
        return (ImageResponse(found.variant, of: found.original, admitted), isFinal)
    }

    private func inMemory(_ original: Original, _ admitted: AdmittedRequest) -> DerivedVariant? {
        guard let recipe = admitted.request.recipe else {
            guard let whole = lookUp.bodyInMemory(of: original), case .bytes(let bytes)? = whole.body,
                ContentCodings(whole.record.response.fields) == nil,
                let variant = try? render.whole(whole, bytes, admitted)
            else { return nil }
            return DerivedVariant(variant: variant, original: whole)
        }
        let libraries = render.libraries.known
        guard libraries != .unknown, let plan = try? render.plan(recipe, of: original, admitted, with: libraries) else {
            return nil
        }
        return lookUp.variantInMemory(plan.key).map { DerivedVariant(variant: $0, original: original) }
    }

    /// The stored picture to show while the pipeline asks the origin; nil if no tier has one, or the pipeline does not ask.
    func shown(_ finding: CacheFinding, _ admitted: AdmittedRequest) async -> ImageResponse? {
        guard !admitted.transport.isLocal, let original = lookUp.shown(finding),
            (try? fetch.check(original, admitted)) != nil
        else { return nil }
        guard let recipe = admitted.request.recipe else {
            guard let whole = await lookUp.body(of: original) else { return nil }
            return (try? await render.whole(whole, admitted)).map { ImageResponse($0, of: whole, admitted) }
        }
        guard let plan = try? await render.plan(recipe, of: original, admitted) else { return nil }
        return await lookUp.variant(plan.key, of: original).map { ImageResponse($0, of: original, admitted) }
    }

    /// Ends work that takes longer than its request allows. What others share of it goes on.
    func inTime(
        _ request: ImageRequest, _ tell: LoadTask.Tell?,
        _ work: @escaping @Sendable (LoadTask.Tell?) async throws(PipelineError) -> ImageResponse
    ) async throws(PipelineError) -> ImageResponse {
        guard let timeout = request.timeout else { return try await work(tell) }
        if let found = inMemory(request), found.isFinal {
            tell?(.cached(found.response))
            return found.response
        }
        let isRendering = Switch()
        let result = await withTaskGroup(of: Result<ImageResponse, PipelineError>?.self) { group in
            group.addTask {
                await Result { () async throws(PipelineError) in
                    try await work { event in
                        if case .rendering = event { isRendering.turnOn() }
                        tell?(event)
                    }
                }
            }
            group.addTask {
                try? await Task.sleep(for: timeout)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
        if let result { return try result.get() }
        if Task.isCancelled { throw .cancelled }
        throw PipelineError(
            isRendering.isOn ? .renderDeadline : .fetchTimedOut,
            "\(request.source.displayName): not answered within \(timeout), the timeout of the request")
    }
}
