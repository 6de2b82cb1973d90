import HTTPCaching
public import PipelineCaching
import PipelineFetching
import PipelineSupport
import Glibc
import Synchronization
public import Variants

/// Fetches originals, caches them, derives variants and caches those. One instance serves a whole program.
///
/// Safe to call from any task or thread. Call `shutdown()` before the program exits, so that queued writes are stored.
public final class ImagePipeline: Sendable {
    let admit: AdmitStage
    let lookUp: LookUpStage
    let fetch: FetchStage
    let render: RenderStage
    private let keep: KeepStage
    let tiers: Tiers
    /// Fetches and renders in progress, shared by all requests that want their results.
    let fetches: SharedWork<Original, PipelineError>
    let renders: SharedWork<DerivedVariant, PipelineError>
    /// Variants being decoded for callers that display them.
    let decodes = SharedWork<PixelBuffer, PipelineError>()
    private let isShutDown: Switch
    private let threads: OwnedThreads
    private let transports: [String: any Transport]
    /// The transport of the bucket behind the caches; nil without one.
    private let remote: (any Transport)?
    let purger: Purger
    private let follower: FleetFollower?
    let renderer: any Rendering
    let limits: RenderLimits
    /// Recipes that have names.
    package let presets: RecipePresets
    private let background: BackgroundWork
    private let pressure: MemoryPressure?
    let observe: Observer
    /// Requests that run to completion even if every caller has left.
    private let abandoned = SharedWork<ImageResponse, PipelineError>()
    private let abandonable = Atomic<Int>(0)
    /// Requests with methods other than GET, which may change state at the origin.
    private let changes = SharedWork<OriginalResponse, PipelineError>()
    /// The addresses the transport may connect to; nil if the caller supplied one for http, which decides for itself.
    let addresses: AddressPolicy?
    package let caching: CachingConfiguration
    let now: @Sendable () -> Double

    /// Opens the caches. libvips and libcurl are loaded when first needed, not here.
    ///
    /// Throws `cacheUnavailable` if the cache folder cannot be made or opened, or was written by a newer version, and
    /// `invalidRecipe` if a preset does not parse.
    public init(_ configuration: PipelineConfiguration = PipelineConfiguration()) throws(PipelineError) {
        do throws(RecipeError) {
            presets = try RecipePresets(configuration.presets)
        } catch {
            throw PipelineError(error, "PipelineConfiguration.presets: ")
        }
        let now = configuration.now
        self.now = now
        let isShutDown = Switch()
        self.isShutDown = isShutDown
        observe = Observer(
            logger: configuration.logger, metrics: configuration.metrics, tracer: configuration.tracer)
        let observe = observe
        caching = configuration.caching
        background = BackgroundWork(limit: configuration.caching.backgroundValidations)
        threads = OwnedThreads(count: max(1, configuration.lookupThreads))
        var fetching = configuration.fetch
        fetching.byteLimit = configuration.limits.bytes
        if fetching.spoolFolder == nil, let folder = configuration.cacheFolder {
            fetching.spoolFolder = folder
            fetching.spoolFloor =
                configuration.disk.freeSpace ?? FileSystemSpace(holding: folder)?.ordinaryFloor ?? 0
        }
        let bucket = configuration.remote?.transport(fetching)
        remote = bucket?.base
        let feed = configuration.fleet.map { fleet in
            PurgeFeed(fleet, folder: configuration.cacheFolder, authoritiesFile: fetching.authoritiesFile) {
                observe.warn($0)
            }
        }
        do throws(StoreError) {
            let placement = bucket.flatMap { configuration.remote?.placement($0.0) }
            var tiering = TiersConfiguration(configuration, remote: placement)
            tiering.news = feed
            tiers = try Tiers(tiering, readers: threads)
        } catch {
            throw PipelineError(error)
        }
        let memory = configuration.memory
        // Smaller tiers are not worth a waiting thread.
        let isLarge = memory.originals + memory.variants + memory.pixels >= 64_000_000
        let tiers = tiers
        purger = Purger(tiers: tiers, feed: feed)
        pressure =
            configuration.yieldsToMemoryPressure && isLarge
            ? MemoryPressure(MemoryPressure.opened(MachineMemory.pressureFiles)) { tiers.yieldMemory() }
            : nil
        let origins = RetryingTransport(CurlTransport(fetching), configuration: fetching)
        var files = FileTransport(byteLimit: configuration.limits.bytes, threads: threads)
        files.bounds = configuration.fileBounds
        let builtIn: [String: any Transport] = [
            "http": origins,
            "https": origins,
            "s3": S3Transport(origins, configuration.s3),
            "file": files,
        ]
        let providers = configuration.providers.filter { builtIn[$0.key] == nil }
            .mapValues { [threads] in ProviderTransport($0, fetching, threads: threads) as any Transport }
        let transports = builtIn.merging(configuration.transports.merging(providers) { $1 }) { $1 }
        self.transports = transports
        addresses = configuration.transports["http"] == nil ? AddressPolicy(fetching.allowPrivateAddresses) : nil
        renderer = Self.renderer(configuration, observe)
        limits = configuration.limits
        fetches = SharedWork(.original, tiers: tiers)
        renders = SharedWork(.variant, tiers: tiers)
        admit = AdmitStage(
            masks: MaskFolder(configuration.masks),
            overlays: MaskFolder(configuration.overlays, of: .overlay), threads: threads,
            files: files, transports: transports,
            // Records have names that begin with `id` and `bytes`.
            ownSchemes: Set(transports.keys).subtracting(builtIn.keys).subtracting(["id", "bytes"]),
            policy: configuration.policy, names: SourceNames(configuration.fetch.hosts),
            sources: configuration.fetch.sources,
            isShutDown: { isShutDown.isOn })
        let codings = UndoneCodings(threads: threads) { [limits] (codings, sent) throws(RenderError) in
            try codings.undone(sent, limit: limits.bytes)
        }
        lookUp = LookUpStage(tiers: tiers, caching: configuration.caching, now: now)
        fetch = FetchStage(
            tiers: tiers, purger: purger, backlog: Backlog("fetches", limit: configuration.queue),
            caching: configuration.caching, freshness: configuration.fetch.hosts.compactMapValues(\.freshness),
            acceptedTypes: configuration.acceptedTypes, byteLimit: configuration.limits.bytes, threads: threads,
            codings: codings,
            failures: FailureMemory(
                maxAge: configuration.caching.errorMaxAge, attempts: configuration.caching.errorAttempts),
            // Starting a worker takes about as long as many origins take to answer, so it starts during the fetch.
            willRender: { [pool = renderer as? WorkerPool] in pool?.startFirst() },
            traceFields: { observe.traceFields }, now: now)
        render = RenderStage(
            renderer: renderer,
            libraries: KnownLibraries(
                renderer, folder: configuration.cacheFolder, libvips: configuration.libvips, threads: threads),
            quality: configuration.quality, light: configuration.light, effort: configuration.effort,
            outputs: configuration.outputs,
            limits: configuration.limits, threads: threads, codings: codings,
            backlog: Backlog("renders", limit: configuration.queue), now: now,
            warn: { [observe] in observe.warn($0, stage: .render) })
        keep = KeepStage(tiers: tiers, caching: configuration.caching, willStore: configuration.willStore)
        follower = feed.map { [purger] in FleetFollower($0, purger) }
        observe.metrics?.start(every: .seconds(5)) { [weak self] in self?.metricCounts }
    }

    static func renderer(_ configuration: PipelineConfiguration, _ observe: Observer) -> any Rendering {
        if let renderer = configuration.renderer { return renderer }
        switch configuration.isolation {
        case .inProcess:
            if let path = configuration.libvips { VipsLibrary.choose(path) }
            return InProcessRenderer(
                threads: configuration.renderThreads ?? Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) + 1,
                formats: configuration.inProcessFormats, longRenders: configuration.longRenders)
        case .workers(var workers):
            workers.longRenders = configuration.longRenders
            workers.libvips = configuration.libvips
            workers.drawsText = configuration.limits.formats.contains(.svg)
            workers.warn = { [warn = workers.warn] message in
                warn(message)
                observe.warn(message, stage: .render)
            }
            return WorkerPool(workers)
        }
    }

    /// Starts the render workers ahead of the first request and returns how they are locked down; nil if renders run in
    /// this process.
    ///
    /// Throws `workersUnavailable` or `libraryUnavailable`; requests that need no render still succeed.
    public func prepareWorkers() async throws(PipelineError) -> WorkerProtection? {
        guard let pool = renderer as? WorkerPool else { return nil }
        do throws(RenderError) {
            return try await pool.prepare()
        } catch {
            throw PipelineError(
                error.code == .libraryUnavailable ? .libraryUnavailable : .workersUnavailable, error.message)
        }
    }

    /// Counters of the render workers; nil if renders run in this process.
    public var workerStatistics: WorkerStatistics? { (renderer as? WorkerPool)?.statistics }

    /// The transport for buckets, unless a program has its own.
    package var buckets: S3Transport? { transports["s3"] as? S3Transport }

    /// Whether only sources that `sources.allow` names are fetched.
    package var admitsListedSourcesOnly: Bool { !admit.sources.allow.isEmpty }

    // MARK: The stages

    /// Answers a request. Cancelling the calling task stops the work unless another caller waits for it too.
    public func respond(to request: ImageRequest) async throws(PipelineError) -> ImageResponse {
        try await respond(to: request, telling: nil)
    }

    /// - Parameters:
    ///   - tell: hears what happens, but for the end; nil for a request without a handle.
    ///   - showsStale: whether a stale picture is shown first, and a better one waited for.
    func respond(
        to request: ImageRequest, telling tell: LoadTask.Tell?, showsStale: Bool = false
    ) async throws(PipelineError) -> ImageResponse {
        try await inTime(request, tell) { (tell) async throws(PipelineError) in
            try await self.finished(request, tell, showsStale: showsStale)
        }
    }

    private func finished(
        _ request: ImageRequest, _ tell: LoadTask.Tell?, showsStale: Bool
    ) async throws(PipelineError) -> ImageResponse {
        try await finishing(request.source, abandoned, if: request.finishWhenAbandoned, request.priority) {
            () async throws(PipelineError) in
            var asked = try await self.observe.stage(.admit, await self.admit(request, telling: tell))
            if showsStale { asked.showsStale = true }
            let admitted = asked
            let finding = try await self.observe.stage(.lookUp, await self.lookUp(admitted))
            if showsStale, let tell, let shown = await self.shown(finding, admitted) { tell(.cached(shown)) }
            let original = try await self.original(finding, admitted)
            let derived = try await self.variantOfUsable(original, admitted)
            return ImageResponse(derived.variant, of: derived.original, admitted)
        }
    }

    /// Returns the origin's response to a request, stored or fetched and stored now, whatever its status.
    ///
    /// A method other than GET always reaches the origin, and invalidates what is stored for the URL if it succeeds.
    ///
    /// Throws if there is no response to return: `notCached` if the request forbids contacting the origin,
    /// `fetchFailed` and `fetchTimedOut` if the origin failed and no stored response may be used instead, `notAnImage`
    /// if a successful response has a type that is not in `acceptedTypes` (with such a type other statuses are errors
    /// too, as they are for images).
    public func original(for request: OriginalRequest) async throws(PipelineError) -> OriginalResponse {
        // A request that has reached the origin takes effect there even if the caller leaves, so it runs to completion.
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

    /// Fetch, keep: the stored original if it may be used; otherwise fetched once for all requests that it answers.
    func original(
        _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> Original {
        let original: Original
        switch try await fetch.course(finding, admitted) {
        case .reuse(let stored):
            original = stored
        case .reuseAndValidate(let stored) where !admitted.showsStale:
            validateInBackground(finding, admitted)
            original = stored
        case .reuseAndValidate(let stored):
            // The load has shown the stale picture, and ends with the new one.
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
        return admitted.request.recipe == nil ? try await withBody(original, admitted) : original
    }

    private func fetchedInTurn(
        _ finding: CacheFinding, _ admitted: AdmittedRequest, found: FetchedResponse? = nil
    ) async throws(PipelineError) -> Original {
        try await admitted.waitForDelay()
        try admitted.request.gate?.enter()
        admitted.tell?(.fetching(hadCached: finding.record != nil))
        let original = try await fetchedOrStale(finding, admitted, found: found)
        try fetch.check(original, admitted)
        return original
    }

    /// The variant of an original; if that cannot be decoded, of the picture it was to replace, stale, as for an origin
    /// that fails.
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
            await keep.undecodable(original, admitted)
            let finding = await lookUp(admitted)
            guard let earlier = finding.reusable ?? fetch.stale(finding, admitted, after: .unusable) else {
                throw error
            }
            return try await variant(of: earlier, admitted)
        }
    }

    /// Look up, render, keep: the stored variant; otherwise rendered once for all requests that want it now.
    private func variant(
        of found: Original, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> DerivedVariant {
        guard let recipe = admitted.request.recipe else {
            let whole = try await render.withHeader(found, admitted)
            return admitted.shows(DerivedVariant(variant: try await render.whole(whole, admitted), original: whole))
        }
        // Only the body tells why it is not an image, and it may not have been loaded with the record.
        let original = found.record.header == nil ? try await withHeader(found, admitted) : found
        let plan = try await render.plan(recipe, of: original, admitted)
        let stored = try await observe.stage(.lookUp, await lookUp.variant(plan.key, of: original))
        if let stored {
            let settled = await keep.settled(original, admitted)
            return admitted.shows(DerivedVariant(variant: stored, original: settled))
        }
        if !admitted.transport.keepsRecords {
            admitted.tell?(.fetching(hadCached: false))
            admitted.tell?(.progress(received: original.record.length, expected: original.record.length))
        }
        let request = admitted.request
        try await admitted.waitForDelay()
        try request.gate?.enter()
        let name = "\(plan.key)|\(original.mayStore)|\(request.storage.rawValue)"
        let begins = renders.reporter(for: name)
        let shared = try await renders.value(
            for: name, priority: request.priority.taskPriority, finishWhenAbandoned: request.finishWhenAbandoned,
            isShared: original.mayStore && request.storage.contains(.variantsOnDisk),
            lookUp: {
                await self.lookUp.variant(plan.key, of: original, again: true).map {
                    DerivedVariant(variant: $0, original: original)
                }
            },
            stored: { $0.variant.entry.map { .variant($0.key, of: $0.originalDigest) } },
            onReport: admitted.tellsRendering
        ) { () async throws(PipelineError) -> DerivedVariant in
            // If the body was evicted and is fetched again, it may have changed. No process waits for a variant while
            // it fetches an original, so waiting for a fetch here cannot deadlock.
            let whole = try await self.withHeader(original, admitted)
            let now = try await self.render.plan(recipe, of: whole, admitted)
            if now.key != plan.key, let stored = await self.lookUp.variant(now.key, of: whole) {
                return DerivedVariant(variant: stored, original: whole)
            }
            begins(0, nil)
            let rendered = try await self.observe.stage(.render, await self.render(now, of: whole, admitted))
            let settled = await self.keep.settled(whole, admitted)
            let kept = try await self.observe.stage(.keep, self.keep(rendered, of: settled, admitted))
            return DerivedVariant(variant: kept, original: settled)
        }
        guard shared.isCoalesced else { return shared.value }
        // This request's original did not need its body.
        var derived = DerivedVariant(variant: shared.value.variant, original: original)
        derived.variant.isCollapsed = true
        return derived
    }

    /// The original with its body: from the tiers, or fetched again without validators if all have evicted it.
    private func withBody(_ original: Original, _ admitted: AdmittedRequest) async throws(PipelineError) -> Original {
        if let whole = await lookUp.body(of: original) { return whole }
        let again = CacheFinding(
            records: [original.record], verdict: .missing, forward: .miss, marks: original.marks, tier: .none,
            missingBody: original.record.digest)
        return try await self.original(again, admitted)
    }

    private func withHeader(_ original: Original, _ admitted: AdmittedRequest) async throws(PipelineError) -> Original {
        try await render.withHeader(withBody(original, admitted), admitted)
    }

    // MARK: Sharing

    /// The fetched original, or the stale one if the queue has no room for a fetch and the stale one will do.
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
        // The second round is for waiters that the first answer does not fit because it varies; now the keys differ.
        for _ in 0..<2 {
            let report = fetches.reporter(for: key)
            let (original, isCoalesced) = try await fetches.value(
                for: key, priority: request.priority.taskPriority, finishWhenAbandoned: request.finishWhenAbandoned,
                isShared: request.storage.contains(.originalsOnDisk) && lookUp.mayUseStored(finding, admitted)
                    && found == nil,
                lookUp: { await self.lookUp.originalStoredMeanwhile(finding, admitted) },
                stored: { self.fetch.stored($0) }, onReport: admitted.tellsProgress
            ) { () async throws(PipelineError) in try await fetchAndKeep(report) }
            if !isCoalesced { return original }
            if let mine = fetch.shared(original, with: admitted) { return mine }
            guard let narrowed = fetch.narrowed(key, by: original, admitted) else { break }
            key = narrowed
        }
        // A response that may not be stored, or not be reused, answers one request only: each waiter asks for itself.
        return try await fetchAndKeep(admitted.tellsProgress)
    }

    /// Validates a stale response that has already been answered with (RFC 5861 §3).
    private func validateInBackground(_ finding: CacheFinding, _ admitted: AdmittedRequest) {
        var (asked, admitted) = (finding, admitted)
        asked.verdict = .validate
        asked.forward = .stale
        admitted.tell = nil
        admitted.request.priority = .low
        admitted.request.delay = .zero
        admitted.request.finishWhenAbandoned = true
        background.start(fetch.key(asked, admitted)) {
            [asked, admitted] () async throws(PipelineError) in
            let original = try await self.fetchedOnce(asked, admitted)
            // The stored response answered again: the origin failed, or sent nothing usable.
            if original.isStale { throw PipelineError(.fetchFailed, "\(admitted.displayName): still stale") }
        }
    }

    /// Answers a request in a task of its own, which goes on if the caller leaves, or else directly.
    private func finishing<Answer: ObservedAnswer>(
        _ source: ImageSource, _ shared: SharedWork<Answer, PipelineError>, if isIndependent: Bool,
        _ priority: RequestPriority, _ body: @escaping @Sendable () async throws(PipelineError) -> Answer
    ) async throws(PipelineError) -> Answer {
        let work = { @Sendable [isShutDown] () async throws(PipelineError) -> Answer in
            do throws(PipelineError) { return try await body() } catch {
                // Transports and workers that are shut down fail in these ways.
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

    // MARK: Other ways to ask

    /// The variant decoded to sRGB RGBA, for callers that display it. With a budget (`memory.pixels`, off by default)
    /// decoded pixels are kept for as long as the variant is valid; freshness is still checked for every request.
    public func pixels(for request: ImageRequest) async throws(PipelineError) -> PixelBuffer {
        let generation = tiers.pixels.generation
        let response = try await respond(to: request)
        if let kept = tiers.decoded(response.digest) { return kept }
        var limits = limits
        // `decoders` restricts originals, not the variants this pipeline has written.
        if request.recipe != nil { limits.formats.formUnion(ImageFormat.decodable) }
        return try await decodes.value(
            for: "\(response.digest)|\(request.recipe == nil)|\(response.isStorable)",
            priority: request.priority.taskPriority, finishWhenAbandoned: request.finishWhenAbandoned
        ) { [limits] () async throws(PipelineError) in
            let began = ContinuousClock.now
            let pixels = try await self.observe.stage(.render, await self.decoded(response.bytes, limits))
            if response.isStorable, request.recipe != nil || limits.damaged == .refuse {
                self.tiers.keep(
                    pixels, response.digest, of: response.record,
                    milliseconds: began.duration(to: .now).milliseconds, generation: generation)
            }
            return pixels
        }.value
    }

    private func decoded(_ bytes: [UInt8], _ limits: RenderLimits) async throws(PipelineError) -> PixelBuffer {
        do throws(RenderError) {
            let header = try ImageHeader.probe(bytes)
            return try await renderer.pixels(
                RenderJob(original: bytes, header: header, recipe: Recipe(), limits: limits))
        } catch {
            throw PipelineError(error, source: "the variant")
        }
    }

    /// Frees memory, for a program that is about to need it or is running short: the memory tiers evict their least
    /// valuable entries until they take at most this share (0…1) of what they take now. Their budgets stay, and they
    /// fill up again as entries are requested. Takes a few milliseconds per gigabyte.
    /// - Returns: bytes freed.
    @discardableResult
    public func reduceMemory(to share: Double = 0) -> Int { tiers.reduceMemory(to: share) }

    /// What the cache folder holds and has done; nil without a folder, or if it cannot be read.
    public func diskStatistics() async -> TierStatistics? {
        // A disk error has been counted and reported already; there is nothing to return.
        try? await tiers.folder?.statistics()
    }

    /// What the memory tiers hold and have done.
    public var memoryStatistics: TierStatistics {
        var statistics = tiers.memory.statistics()
        statistics.pixels = tiers.pixels.counters
        return statistics
    }

    /// Counters of work shared with other processes on the cache folder.
    package var sharingStatistics: SharingCounters { tiers.folder?.locks.counters ?? SharingCounters() }

    package var backgroundStatistics: BackgroundCounters { background.counters }

    /// How this machine is doing in its fleet; nil without one.
    public var fleetStatus: FleetStatus? { purger.feed?.status }

    /// Waits until background validations and abandoned requests that run to completion have finished, and everything
    /// answered so far is stored.
    public func drain() async {
        await abandoned.drain()
        await decodes.drain()
        await changes.drain()
        await background.drain()
        await tiers.drain()
    }

    /// Waits for abandoned requests that run to completion and for background validations (`fetch.totalSeconds` and
    /// `limits.seconds` bound both), starts no more, writes what is queued, then stops every thread. Requests that
    /// are waiting for an origin or a render, and those made from now on, fail with `shutDown`, whatever is cached.
    public func shutdown() async {
        isShutDown.turnOn()
        pressure?.stop()
        await abandoned.drain()
        await decodes.drain()
        await changes.drain()
        await background.close()
        await renderer.shutdown()
        await follower?.close()
        await tiers.close()
        for transport in transports.values { await transport.shutdown() }
        await remote?.shutdown()
        await threads.stopped()
        observe.metrics?.stop()
        reportMetrics()
    }
}
