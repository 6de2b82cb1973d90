import PipelineCaching
import Variants

extension ImagePipeline {
    /// Starts a load and returns immediately. If memory can answer the request without contacting the origin, the
    /// returned load has already finished.
    public func load(_ request: ImageRequest) -> LoadTask { load(request, showsStale: true) }

    /// - Parameter showsStale: whether to report a stale picture first and then wait for a current one. If false, the
    ///   load returns the same response as `respond(to:)`.
    package func load(_ request: ImageRequest, showsStale: Bool) -> LoadTask {
        let load = LoadTask(request)
        begin(load, showsStale: showsStale)
        return load
    }

    /// Returns a finished load if memory can answer the request.
    func loadFromMemory(_ request: ImageRequest) -> LoadTask? {
        guard let held = inMemory(request, files: .leftOut), held.isFinal else { return nil }
        let load = LoadTask(request)
        end(load, held)
        return load
    }

    /// Starts a load. Finishes it immediately if memory can answer the request. If memory holds a variant of a file, a
    /// look-up thread first compares the file with its record.
    ///
    /// - Parameter owner: retained until the load has finished.
    func begin(_ load: LoadTask, showsStale: Bool = true, for owner: ImageLoader? = nil) {
        let held = inMemory(load.request, files: .toBeChecked)
        if let held, held.isFinal { return end(load, held) }
        load.startClock()
        let work: LoadTask.Work = { [self] (request, onEvent) async throws(PipelineError) in
            defer { withExtendedLifetime(owner) {} }
            return try await respond(to: request, onEvent: onEvent, showsStale: showsStale)
        }
        guard let held, let isUnchanged = held.isUnchanged else { return load.begin(work) }
        fetch.threads.submit { [self] in
            if isUnchanged() { end(load, held) } else { load.begin(work) }
            withExtendedLifetime(owner) {}
        }
    }

    private func end(_ load: LoadTask, _ held: Held) {
        observe.hit(of: held.source, since: held.began)
        load.end(with: held.response)
    }

    /// Returns the picture that memory holds for a request, fresh or stale (see `ImageResponse.isStale`). Use it to
    /// show a picture immediately, before or instead of a load.
    ///
    /// The call does not suspend, starts no work, and does not access the cache folder, files or origins. A variant of
    /// a file therefore counts as stale. Returns nil if memory does not hold the picture, if the request supplies the
    /// bytes, or if its recipe names masks or overlays.
    public func cachedImage(for request: ImageRequest) -> ImageResponse? {
        guard let held = inMemory(request, files: .stale) else { return nil }
        observe.hit(of: held.source, since: held.began)
        return held.response
    }

    /// A picture found in memory.
    private struct Held {
        let response: ImageResponse
        let source: String
        let began: ContinuousClock.Instant?
        /// Whether `respond(to:)` would return the same picture without starting any work.
        let isFinal: Bool
        /// A closure that returns whether the file is unchanged, so that `respond(to:)` would return the same picture.
        /// The closure blocks. The value is nil if the source is not a file.
        var isUnchanged: (@Sendable () -> Bool)?
    }

    /// How `inMemory` treats a request for a file. The file itself is never accessed.
    private enum Files {
        case leftOut, stale
        /// Assumes that the file has not changed. The caller checks it.
        case toBeChecked
    }

    private func inMemory(_ request: ImageRequest, files: Files) -> Held? {
        let began = observe.start
        guard let admitted = try? admit.atOnce(request), let finding = lookUp.inMemory(admitted),
            files != .leftOut || !finding.isLocal
        else { return nil }
        let isUnchanged = files == .toBeChecked ? fetch.check(finding, admitted) : nil
        let unchanged = isUnchanged.flatMap { _ in finding.unchanged }
        guard let original = finding.reusable ?? unchanged ?? lookUp.displayableOriginal(finding),
            !admitted.isForVariant || !original.record.isProvisional,
            (try? fetch.check(original, admitted)) != nil, let found = inMemory(original, admitted)
        else { return nil }
        let isFinal = if case .reuse = finding.verdict { true } else { false }
        return Held(
            response: ImageResponse(found.variant, of: found.original, admitted), source: admitted.source, began: began,
            isFinal: isFinal, isUnchanged: isUnchanged)
    }

    private func inMemory(_ original: Original, _ admitted: AdmittedRequest) -> DerivedVariant? {
        let settled: Recipe?
        do throws(PipelineError) { settled = try render.recipe(of: original, admitted) } catch { return nil }
        guard let recipe = settled else {
            guard let whole = lookUp.bodyInMemory(of: original), case .bytes(let bytes)? = whole.body,
                ContentCodings(whole.record.response.fields) == nil,
                let variant = try? render.unmodified(whole, bytes, admitted)
            else { return nil }
            return DerivedVariant(variant: variant, original: whole)
        }
        let libraries = render.libraries.known
        guard libraries != .unknown, let plan = try? render.plan(recipe, of: original, admitted, with: libraries) else {
            return nil
        }
        return lookUp.variantInMemory(plan.key).map {
            DerivedVariant(variant: withPass($0, of: plan), original: original)
        }
    }

    /// Returns the stored picture to show while the pipeline contacts the origin, or nil if no tier has one or the
    /// pipeline does not contact the origin.
    func cachedResponse(_ finding: CacheFinding, _ admitted: AdmittedRequest) async -> ImageResponse? {
        guard !finding.isLocal, let original = lookUp.displayableOriginal(finding),
            (try? fetch.check(original, admitted)) != nil
        else { return nil }
        let settled: Recipe?
        do throws(PipelineError) { settled = try render.recipe(of: original, admitted) } catch { return nil }
        guard let recipe = settled else {
            guard let whole = await lookUp.body(of: original) else { return nil }
            return (try? await render.unmodified(whole, admitted)).map { ImageResponse($0, of: whole, admitted) }
        }
        guard let plan = try? await render.plan(recipe, of: original, admitted) else { return nil }
        return await lookUp.variant(plan.key, of: original).map {
            ImageResponse(withPass($0, of: plan), of: original, admitted)
        }
    }
}
