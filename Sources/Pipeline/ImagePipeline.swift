import HTTPCaching
import PipelineCaching
import PipelineFetching
import PipelineSupport
import Synchronization
package import Variants

/// Fetches pictures, renders thumbnails and other variants of them, and caches both. Create one pipeline for the whole
/// program.
///
/// ```swift
/// let pipeline = try ImagePipeline(PipelineConfiguration(cacheFolder: "/var/cache/my-app"))
/// let image = try await pipeline.image(for: "https://example.org/photo.jpg", recipe: "thumbnail:300,webp")
/// print(image.mediaType, image.width, image.height, image.bytes.count)
/// await pipeline.shutdown()
/// ```
///
/// `respond(to:)` takes an `ImageRequest` with more options. `load(_:)` returns a `LoadTask`, which reports progress.
/// Requests for the same picture share one fetch and one render.
///
/// A pipeline is safe to use from any task or thread. Call `shutdown()` before the program exits, so that queued writes
/// are stored.
public final class ImagePipeline: Sendable {
    let admit: AdmitStage
    let lookUp: LookUpStage
    let fetch: FetchStage
    let render: RenderStage
    let keep: KeepStage
    let tiers: Tiers
    /// Fetches and renders in progress, each shared by all requests for its result.
    let fetches = SharedWork<Original, PipelineError>()
    let renders = SharedWork<DerivedVariant, PipelineError>()
    /// The second passes, or nil if the configuration has none.
    let secondPass: SecondPass?
    /// Variants that are being decoded for display.
    let decodes = SharedWork<PixelBuffer, PipelineError>()
    private let isShutDown: OneWayFlag
    private let threads: OwnedThreads
    private let transports: [String: any Transport]
    /// The transport of the bucket behind the caches, or nil if there is no bucket.
    private let remote: (any Transport)?
    let purger: Purger
    private let follower: FleetFollower?
    let renderer: any Rendering
    package let limits: RenderLimits
    /// The named recipes.
    package let presets: RecipePresets
    private let background: BackgroundWork
    private let pressure: MemoryPressure?
    let observe: Observer
    /// Requests that run to completion even if every caller has been cancelled.
    private let abandoned = SharedWork<ImageResponse, PipelineError>()
    private let abandonable = Atomic<Int>(0)
    /// Requests with methods other than GET, which may change state at the origin.
    private let changes = SharedWork<OriginalResponse, PipelineError>()
    /// The addresses that the transport may connect to, or nil if the caller supplied a transport for `http`, which
    /// makes its own decision.
    let addresses: AddressPolicy?
    package let caching: CachingConfiguration
    let now: @Sendable () -> Double

    /// Opens the caches. libvips and libcurl are loaded on first use, not here.
    ///
    /// Throws `cacheUnavailable` if the cache folder cannot be created or opened, or was written by a newer version.
    /// Throws `invalidRecipe` if a preset does not parse.
    public init(_ configuration: PipelineConfiguration = PipelineConfiguration()) throws(PipelineError) {
        do throws(RecipeError) { presets = try RecipePresets(configuration.rendering.presets) } catch {
            throw PipelineError(error, "RenderingConfiguration.presets: ")
        }
        let (observe, isShutDown) = (Observer(configuration), OneWayFlag())
        let threads = OwnedThreads(count: max(1, configuration.maxConcurrentLookups))
        let fetching = configuration.fetching
        let bucket = configuration.remote?.transport(fetching)
        let feed = configuration.fleet.map { fleet in
            PurgeFeed(fleet, authoritiesFile: fetching.authoritiesFile) { observe.warn($0) }
        }
        let tiers: Tiers
        do throws(StoreError) {
            let placement = bucket.flatMap { configuration.remote?.placement($0.0) }
            var tiering = TiersConfiguration(configuration, remote: placement)
            tiering.purgeUpdates = feed
            tiers = try Tiers(tiering, readers: threads)
        } catch {
            throw PipelineError(error)
        }
        feed?.waiting.folder.withLock { [folder = tiers.folder] in $0 = folder }
        let purger = Purger(tiers: tiers, feed: feed, unconfirmed: UnconfirmedPurges(tiers))
        let transports = Transports(configuration, fetching, threads: threads)
        let renderer = configuration.rendering.madeRenderer(observe)
        let codings = ContentDecoder(threads: threads) {
            [limits = configuration.rendering.limits] (codings, sent) throws(RenderError) in
            try codings.decoded(sent, limit: limits.bytes)
        }
        (now, caching, limits) = (configuration.now, configuration.caching, configuration.rendering.limits)
        (self.observe, self.isShutDown, self.threads) = (observe, isShutDown, threads)
        (self.tiers, self.purger, self.renderer) = (tiers, purger, renderer)
        self.transports = transports.byScheme
        remote = bucket?.base
        background = BackgroundWork(limit: configuration.caching.maxConcurrentValidations)
        pressure = configuration.memoryPressure(tiers)
        addresses = configuration.transports["http"] == nil ? AddressPolicy(fetching.allowPrivateAddresses) : nil
        admit = AdmitStage(configuration, transports, threads: threads) { isShutDown.isOn }
        lookUp = LookUpStage(tiers: tiers, caching: configuration.caching, now: configuration.now)
        fetch = FetchStage(configuration, purger, codings, renderer, threads: threads, observe)
        render = RenderStage(configuration, codings, renderer, threads: threads, observe)
        secondPass = configuration.secondPass(tiers, render)
        keep = KeepStage(tiers: tiers, caching: configuration.caching, willStore: configuration.willStore)
        follower = feed.map { FleetFollower($0, purger) }
        observe.metrics?.start(every: .seconds(5)) { [weak self] in self?.metricCounts }
    }

    /// Starts the render workers before the first request needs them.
    ///
    /// - Returns: the protections, such as Landlock, that the kernel or the environment of the process does not grant
    ///   to the workers. The array is empty if all protections are in force. The result is nil if renders run in this
    ///   process.
    /// - Throws: `workersUnavailable` or `libraryUnavailable`. Requests that need no render still succeed.
    @discardableResult
    public func prepareWorkers() async throws(PipelineError) -> [String]? {
        guard let pool = renderer as? WorkerPool else { return nil }
        do throws(RenderError) {
            return try await pool.prepare()
        } catch {
            throw PipelineError(
                error.code == .libraryUnavailable ? .libraryUnavailable : .workersUnavailable, error.message)
        }
    }

    /// The protections in force in the render workers, or nil until a worker has started.
    package var workerProtection: WorkerProtection? { (renderer as? WorkerPool)?.protection }

    /// The transport for buckets, unless the program supplied its own.
    package var buckets: (any FolderStore)? { transports["s3"] as? any FolderStore }

    /// Whether fetches are restricted to sources that match `sources.allow`.
    package var admitsListedSourcesOnly: Bool { !admit.sources.allow.isEmpty }

    /// Returns whether the `sources` settings allow a URL. A URL that does not parse is not allowed.
    package func allows(_ url: String) -> Bool {
        guard let url = try? SourceURL(named: url) else { return false }
        return admit.sources.refusal(of: url) == nil
    }

    // MARK: Stages

    /// Returns the response to a request. Cancelling the calling task cancels the work, unless another caller is
    /// waiting for the same work.
    public func respond(to request: ImageRequest) async throws(PipelineError) -> ImageResponse {
        if request.timeout != nil { return try await load(request, showsStale: false).response }
        return try await respond(to: request, onEvent: nil)
    }

    /// Returns the response to a request, ignoring `timeout`.
    ///
    /// - Parameters:
    ///   - onEvent: a closure that receives the events of the request except `finished`, or nil if the request has no
    ///     `LoadTask`.
    ///   - showsStale: whether to report a stale picture first and then wait for a current one.
    func respond(
        to request: ImageRequest, onEvent: LoadTask.EventHandler?, showsStale: Bool = false
    ) async throws(PipelineError) -> ImageResponse {
        try await finishing(request.source, abandoned, if: request.finishWhenAbandoned, request.priority) {
            () async throws(PipelineError) in
            var asked = try await self.observe.stage(.admit, await self.admit(request, onEvent: onEvent))
            if showsStale { asked.showsStale = true }
            let admitted = asked
            let finding = try await self.observe.stage(.lookUp, await self.lookUp(admitted))
            if showsStale, let onEvent, let shown = await self.cachedResponse(finding, admitted) {
                onEvent(.cached(shown))
            }
            let original = try await self.original(finding, admitted)
            let derived = try await self.variantOfUsable(original, admitted)
            let response = ImageResponse(derived.variant, of: derived.original, admitted)
            self.secondPass?.countSaved(response.savedBytes)
            return response
        }
    }

    /// Returns the response to a request for an original, without its bytes. The body is read only if the header of the
    /// picture is not known.
    package func description(of request: ImageRequest) async throws(PipelineError) -> ImageResponse {
        try await finishing(request.source, abandoned, if: false, request.priority) {
            () async throws(PipelineError) in
            var asked = request
            asked.choice = RecipeChoice("header") { _ in nil }
            let admitted = try await self.observe.stage(.admit, await self.admit(asked))
            let finding = try await self.observe.stage(.lookUp, await self.lookUp(admitted))
            let found = try await self.original(finding, admitted)
            let original = found.record.header == nil ? try await self.withHeader(found, admitted) : found
            let header = try self.render.header(of: original, admitted)
            let variant = Variant(
                bytes: [], entry: nil, format: header.format, width: header.width, height: header.height,
                digest: original.record.digest, outcome: original.outcome ?? .original)
            return ImageResponse(variant, of: original, admitted)
        }
    }

    /// Returns the origin's response to a request, with any status. The response was stored earlier, or is fetched and
    /// stored now.
    ///
    /// A method other than GET always reaches the origin. If the request succeeds, the stored responses for the URL are
    /// invalidated.
    ///
    /// Throws `notCached` if no stored response can be used and the request forbids contacting the origin. Throws
    /// `fetchFailed` or `fetchTimedOut` if the origin failed and no stored response may be used instead. Throws
    /// `notAnImage` if a successful response has a type that is not in `acceptedTypes`. Unsuccessful responses with
    /// such a type also cause an error.
    public func original(for request: OriginalRequest) async throws(PipelineError) -> OriginalResponse {
        // A request that has reached the origin takes effect there even if the caller is cancelled, so it runs to
        // completion.
        try await finishing(.url(request.url), changes, if: request.method != "GET", request.priority) {
            () async throws(PipelineError) in
            let admitted = try await self.observe.stage(.admit, await self.admit(request))
            if request.folder != nil, request.method == "GET" { return try await self.fetch.file(admitted) }
            let original: Original
            if request.method == "GET" {
                let finding = try await self.observe.stage(.lookUp, await self.lookUp(admitted))
                original = try await self.original(finding, admitted)
            } else {
                try admitted.request.gate?.enter()
                let fetched = try await self.observe.stage(.fetch, await self.fetch.change(admitted))
                original = try await self.observe.stage(.keep, self.keep(fetched, of: admitted))
            }
            let isFile = if case .file? = original.body { request.acceptsFile } else { false }
            let body = isFile ? nil : try await self.fetch.bytes(of: original, admitted)
            return OriginalResponse(original, body: body, now: self.now(), caching: self.caching)
        }
    }

    /// Runs the fetch and keep stages. Returns the stored original if it may be used. Otherwise fetches the original,
    /// once for all requests that the response can answer.
    func original(
        _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> Original {
        let original: Original
        switch try await fetch.plan(finding, admitted) {
        case .reuse(let stored):
            original = stored
        case .reuseAndValidate(let stored) where !admitted.showsStale:
            validateInBackground(finding, admitted)
            original = stored
        case .reuseAndValidate(let stored):
            // The load has shown the stale picture and finishes with the new one.
            var asked = finding
            asked.verdict = .validate
            asked.forward = .stale
            do throws(PipelineError) {
                original = try await fetchedInTurn(asked, admitted)
            } catch {
                if error.isCancellation { throw error }
                original = stored
            }
        case .fetch(let found):
            original = try await fetchedInTurn(finding, admitted, found: found)
        }
        return admitted.isForVariant ? original : try await withBody(original, admitted)
    }

    private func fetchedInTurn(
        _ finding: CacheFinding, _ admitted: AdmittedRequest, found: FetchedResponse? = nil
    ) async throws(PipelineError) -> Original {
        try await admitted.waitForDelay()
        try admitted.request.gate?.enter()
        admitted.onEvent?(.fetching(hadCached: finding.record != nil))
        let original = try await fetchedOrStale(finding, admitted, found: found)
        try fetch.check(original, admitted)
        return original
    }

    /// Returns the variant of an original. If the original cannot be decoded, returns a stale variant of the picture
    /// that the original was going to replace, as if the origin had failed.
    private func variantOfUsable(
        _ original: Original, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> DerivedVariant {
        do throws(PipelineError) {
            let derived = try await variant(of: original, admitted)
            if original.outcome == .network { fetch.forgetFailures(admitted) }
            return derived
        } catch {
            guard !admitted.transport.isLocal, error.code == .undecodable, !original.record.isUnusable else {
                throw error
            }
            fetch.noteUnusable(error, admitted)
            await keep.markUndecodable(original, admitted)
            let finding = await lookUp(admitted)
            guard let earlier = finding.reusable ?? fetch.stale(finding, admitted, after: .unusable) else {
                throw error
            }
            return try await variant(of: earlier, admitted)
        }
    }

    /// Runs the look-up, render and keep stages for a variant. Returns the stored variant. Otherwise renders it, once
    /// for all requests that are waiting for it.
    private func variant(
        of found: Original, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> DerivedVariant {
        // The error message depends on the body, which the look-up may not have loaded.
        let isKnown = found.record.header != nil || !admitted.isForVariant
        let original = isKnown ? found : try await withHeader(found, admitted)
        guard let recipe = try render.recipe(of: original, admitted) else {
            let whole = try await withHeader(original, admitted)
            return admitted.reportCached(
                DerivedVariant(variant: try await render.unmodified(whole, admitted), original: whole))
        }
        let plan = try await render.plan(recipe, of: original, admitted)
        let stored = try await observe.stage(.lookUp, await storedVariant(plan, of: original, admitted))
        if let stored {
            let promoted = await keep.promoted(original, admitted)
            let found = DerivedVariant(variant: stored, original: promoted)
            return admitted.reportCached(try await finishingPasses(found, plan, admitted))
        }
        if !admitted.transport.keepsRecords {
            admitted.onEvent?(.fetching(hadCached: false))
            admitted.onEvent?(.progress(received: original.record.length, expected: original.record.length))
        }
        let request = admitted.request
        try await admitted.waitForDelay()
        try request.gate?.enter()
        let name = "\(plan.key)|\(original.mayStore)|\(request.storage.rawValue)"
        let begins = renders.reporter(for: name)
        let shared = try await renders.value(
            for: name, priority: request.priority.taskPriority, finishWhenAbandoned: request.finishWhenAbandoned,
            lookUp: {
                await self.lookUp.variant(plan.key, of: original, again: true).map {
                    DerivedVariant(variant: self.withPass($0, of: plan), original: original)
                }
            },
            onReport: admitted.renderingReporter
        ) { () async throws(PipelineError) -> DerivedVariant in
            // If the body was evicted and has been fetched again, it may have changed. Fetches never wait for renders,
            // so waiting for a fetch here cannot deadlock.
            let whole = try await self.withHeader(original, admitted)
            let settled = try self.render.recipe(of: whole, admitted) ?? recipe
            let now = try await self.render.plan(settled, of: whole, admitted)
            if now.key != plan.key, let stored = await self.lookUp.variant(now.key, of: whole) {
                return DerivedVariant(variant: self.withPass(stored, of: now), original: whole)
            }
            begins(0, nil)
            let rendered = try await self.observe.stage(.render, await self.render(now, of: whole, admitted))
            let promoted = await self.keep.promoted(whole, admitted)
            let kept = try await self.observe.stage(.keep, self.keep(rendered, of: promoted, admitted))
            return try await self.finishingPasses(
                DerivedVariant(variant: kept, original: promoted), now, admitted)
        }
        guard shared.isCoalesced else { return shared.value }
        // This request did not need the body of its original, so the original is reported as it was found.
        var derived = DerivedVariant(variant: shared.value.variant, original: original)
        derived.variant.isCollapsed = true
        return derived
    }

    /// Returns the original with its body. If every tier has evicted the body, fetches it again without validators.
    func withBody(_ original: Original, _ admitted: AdmittedRequest) async throws(PipelineError) -> Original {
        if let whole = await lookUp.body(of: original) { return whole }
        return try await self.original(lookUp.withoutBody(original, admitted), admitted)
    }

    private func withHeader(_ original: Original, _ admitted: AdmittedRequest) async throws(PipelineError) -> Original {
        try await render.withHeader(withBody(original, admitted), admitted)
    }

    // MARK: Sharing

    /// Returns the fetched original. If the queue has no room for the fetch, returns the stale original if that may be
    /// used.
    private func fetchedOrStale(
        _ finding: CacheFinding, _ admitted: AdmittedRequest, found: FetchedResponse?
    ) async throws(PipelineError) -> Original {
        do throws(PipelineError) {
            return try await fetchedOnce(finding, admitted, found: found)
        } catch {
            guard error.isLackOfUrgency, let stale = fetch.stale(finding, admitted, after: .noResponse) else {
                throw error
            }
            return stale
        }
    }

    private func fetchedOnce(
        _ finding: CacheFinding, _ admitted: AdmittedRequest, found: FetchedResponse? = nil
    ) async throws(PipelineError) -> Original {
        let request = admitted.request
        let fetchAndKeep = { @Sendable (report: WorkReport?) async throws(PipelineError) -> Original in
            var admitted = admitted
            admitted.onProgress = report
            let fetched = try await self.observe.stage(.fetch, await self.fetch(finding, admitted, found: found))
            return try await self.observe.stage(
                .keep, self.keep(fetched, of: admitted, known: finding.records + finding.unusable))
        }
        var key = fetch.key(finding, admitted, found: found)
        // The second round is for waiters that cannot use the first response because it varies. Their keys now differ.
        for _ in 0..<2 {
            let report = fetches.reporter(for: key)
            let (original, isCoalesced) = try await fetches.value(
                for: key, priority: request.priority.taskPriority, finishWhenAbandoned: request.finishWhenAbandoned,
                lookUp: { await self.lookUp.originalStoredMeanwhile(finding, admitted) },
                onReport: admitted.progressReporter
            ) { () async throws(PipelineError) in try await fetchAndKeep(report) }
            if !isCoalesced { return original }
            if let mine = fetch.shared(original, with: admitted) { return mine }
            guard let narrowed = fetch.narrowed(key, by: original, admitted) else { break }
            key = narrowed
        }
        // A response that may not be stored or reused answers only one request, so each waiter fetches separately.
        return try await fetchAndKeep(admitted.progressReporter)
    }

    /// Validates a stale response that has already been returned (RFC 5861 §3).
    private func validateInBackground(_ finding: CacheFinding, _ admitted: AdmittedRequest) {
        var (asked, admitted) = (finding, admitted)
        asked.verdict = .validate
        asked.forward = .stale
        admitted.onEvent = nil
        admitted.request.priority = .low
        admitted.request.delay = .zero
        admitted.request.finishWhenAbandoned = true
        background.start(fetch.key(asked, admitted)) {
            [asked, admitted] () async throws(PipelineError) in
            let original = try await self.fetchedOnce(asked, admitted)
            // The stored response was used again because the origin failed or sent an unusable response.
            if original.isStale {
                throw PipelineError(
                    .fetchFailed,
                    "\(admitted.displayName): still stale, because the origin failed or its response was not usable")
            }
        }
    }

    /// Answers a request directly, or in a separate task that continues if the caller is cancelled.
    private func finishing<Response: ObservedResponse>(
        _ source: ImageSource, _ shared: SharedWork<Response, PipelineError>, if isIndependent: Bool,
        _ priority: RequestPriority, _ body: @escaping @Sendable () async throws(PipelineError) -> Response
    ) async throws(PipelineError) -> Response {
        let work = { @Sendable [isShutDown] () async throws(PipelineError) -> Response in
            do throws(PipelineError) { return try await body() } catch {
                // Transports and workers that have been shut down fail with these codes.
                let mayBeShutDown = [.cancelled, .workersUnavailable].contains(error.code)
                throw mayBeShutDown && isShutDown.isOn && !Task.isCancelled ? .shutDown(source) : error
            }
        }
        guard isIndependent else { return try await observe.request(of: source, work) }
        let name = abandonable.add(1, ordering: .relaxed).newValue
        return try await shared.value(
            for: String(name), priority: priority.taskPriority, finishWhenAbandoned: true
        ) { [observe] () async throws(PipelineError) in
            try await observe.request(of: source, work)
        }.value
    }

    package var backgroundStatistics: BackgroundCounters { background.counters }

    /// Waits until background validations and abandoned requests that run to completion have finished, and all
    /// responses so far have been stored.
    public func drain() async {
        await abandoned.drain()
        await decodes.drain()
        await changes.drain()
        await background.drain()
        await tiers.drain()
    }

    /// Shuts the pipeline down.
    ///
    /// Waits for background validations and for abandoned requests that run to completion. `fetch.totalTimeout` and
    /// `limits.seconds` limit how long they take. Starts no more of them, writes queued entries, then stops every
    /// thread. Requests that are waiting for an origin or a render fail with `shutDown`. Later requests fail with
    /// `shutDown` even if their pictures are cached.
    public func shutdown() async {
        isShutDown.turnOn()
        pressure?.stop()
        await abandoned.drain()
        await decodes.drain()
        await changes.drain()
        await background.close()
        await secondPass?.close()
        await renderer.shutdown()
        await render.secondRenderer?.shutdown()
        await follower?.close()
        await purger.unconfirmed.close()
        await tiers.close()
        for transport in transports.values { await transport.shutdown() }
        await remote?.shutdown()
        await threads.stopAndWait()
        observe.metrics?.stop()
        reportMetrics()
    }
}
