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
    let cache: CacheStage
    let fetch: FetchStage
    let render: RenderStage
    private let store: StoreStage
    let tiers: CacheTiers
    private let threads: OwnedThreads
    private let transport: any Transport
    let renderer: any Rendering
    let limits: RenderLimits
    private let background: BackgroundWork
    private let pressure: MemoryPressure?
    /// Requests that run to completion even if every caller has left.
    private let abandoned = Flights<ImageResponse>()
    private let abandonable = Atomic<Int>(0)
    /// Requests with methods other than GET, which may change state at the origin.
    private let changes = Flights<OriginalResponse>()
    /// The addresses the transport may connect to; nil if the caller supplied the transport, which decides for itself.
    let addresses: AddressPolicy?
    let caching: CachingConfiguration
    let now: @Sendable () -> Double

    /// Opens the caches. libvips and libcurl are loaded when first needed, not here.
    ///
    /// Throws `cacheUnavailable` if the cache folder cannot be made or opened, or was written by a newer version.
    public init(_ configuration: PipelineConfiguration = PipelineConfiguration()) throws(PipelineError) {
        let now = configuration.now
        self.now = now
        caching = configuration.caching
        background = BackgroundWork(limit: configuration.caching.backgroundValidations)
        threads = OwnedThreads(count: max(1, configuration.lookupThreads))
        do throws(StoreError) {
            tiers = try CacheTiers(TiersConfiguration(configuration), readers: threads)
        } catch {
            throw PipelineError(error)
        }
        let memory = configuration.memory
        // Smaller tiers are not worth a waiting thread.
        let isLarge = memory.originals + memory.variants + memory.pixels >= 64_000_000
        let tiers = tiers
        pressure =
            configuration.yieldsToMemoryPressure && isLarge
            ? MemoryPressure(MemoryPressure.opened(MachineMemory.pressureFiles)) { _ = tiers.reduceMemory(to: 0.5) }
            : nil
        var fetching = configuration.fetch
        if fetching.spoolFolder == nil { fetching.spoolFolder = configuration.cacheFolder }
        transport = configuration.transport ?? RetryingTransport(CurlTransport(fetching), configuration: fetching)
        addresses = configuration.transport == nil ? AddressPolicy(fetching.allowPrivateAddresses) : nil
        renderer = Self.renderer(configuration)
        limits = configuration.limits
        store = StoreStage(tiers: tiers, willStore: configuration.willStore)
        admit = AdmitStage(
            masks: MaskFolder(configuration.masks),
            overlays: MaskFolder(configuration.overlays, of: .overlay), threads: threads,
            sources: configuration.fetch.sources)
        cache = CacheStage(tiers: tiers, caching: configuration.caching, now: now)
        fetch = FetchStage(
            cache: cache, tiers: tiers, transport: transport, caching: configuration.caching,
            acceptedTypes: configuration.acceptedTypes, byteLimit: configuration.limits.bytes, flights: Flights(),
            store: store, threads: threads, background: background,
            failures: SharedFailureMemory(configuration.caching),
            // Starting a worker takes about as long as many origins take to answer, so it starts during the fetch.
            willRender: { [pool = renderer as? WorkerPool] in pool?.startFirst() }, now: now)
        render = RenderStage(
            tiers: tiers, renderer: renderer, quality: configuration.quality, limits: configuration.limits,
            flights: Flights(), fetch: fetch, store: store, now: now)
    }

    private static func renderer(_ configuration: PipelineConfiguration) -> any Rendering {
        if let renderer = configuration.renderer { return renderer }
        switch configuration.isolation {
        case .inProcess:
            return InProcessRenderer(
                threads: configuration.renderThreads ?? Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) + 1,
                formats: configuration.inProcessFormats)
        case .workers(let workers): return WorkerPool(workers)
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

    /// Answers a request. Cancelling the calling task stops the work unless another caller waits for it too.
    public func respond(to request: ImageRequest) async throws(PipelineError) -> ImageResponse {
        try await respond(to: request, events: { _ in })
    }

    /// Like `respond(to:)`, and reports `requesting` and `progress` events.
    package func respond(
        to request: ImageRequest, events: @escaping @Sendable (LoadEvent) -> Void
    ) async throws(PipelineError) -> ImageResponse {
        guard request.finishWhenAbandoned else { return try await answer(request, events) }
        // All stages run in a task of their own, so the work goes on if the caller leaves.
        let name = abandonable.add(1, ordering: .relaxed).newValue
        return try await abandoned.value(for: String(name), priority: request.priority, finishWhenAbandoned: true) {
            () async throws(PipelineError) -> ImageResponse in
            try await self.answer(request, events)
        }.value
    }

    private func answer(
        _ request: ImageRequest, _ events: @escaping @Sendable (LoadEvent) -> Void
    ) async throws(PipelineError) -> ImageResponse {
        let admitted = try await admit(request, events: events)
        let finding = await cache(admitted)
        let original = try await fetch(finding)
        let variant = try await render(original)
        return ImageResponse(variant)
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
        guard request.method != "GET" else { return try await answer(request) }
        // A request that has reached the origin takes effect there even if the caller leaves, so it runs to completion.
        let name = abandonable.add(1, ordering: .relaxed).newValue
        return try await changes.value(for: String(name), priority: request.priority, finishWhenAbandoned: true) {
            () async throws(PipelineError) -> OriginalResponse in
            try await self.answer(request)
        }.value
    }

    private func answer(_ request: OriginalRequest) async throws(PipelineError) -> OriginalResponse {
        let admitted = try await admit(request)
        let original =
            request.method == "GET" ? try await fetch(await cache(admitted)) : try await fetch.change(admitted)
        let isFile = if case .file? = original.body { request.acceptsFile } else { false }
        let body = isFile ? nil : try await fetch.bytes(of: original)
        return OriginalResponse(original, body: body, now: now(), caching: caching)
    }

    /// The events of one load, in order; the sequence throws a `PipelineError` when `respond(to:)` would.
    ///
    /// Leaving the loop early cancels the load.
    public func load(_ request: ImageRequest) -> AsyncThrowingStream<LoadEvent, any Error> {
        AsyncThrowingStream { continuation in
            let task = Task(priority: request.priority.taskPriority) {
                do throws(PipelineError) {
                    if let cached = await cached(request) {
                        continuation.yield(.cached(cached, outcome: cached.outcome, isStale: cached.isStale))
                    }
                    let response = try await respond(to: request) { continuation.yield($0) }
                    continuation.yield(.finished(response))
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// The answer the caches alone can give now, stale or not; contacts no origin and renders nothing.
    private func cached(_ request: ImageRequest) async -> ImageResponse? {
        var request = request
        request.policy = .cacheOnly
        // A miss is expected here; any other error occurs again in `respond(to:)`, which reports it.
        guard let admitted = try? await admit(request, events: { _ in }) else { return nil }
        let finding = await cache(admitted)
        guard finding.record != nil, case .remote = admitted.origin, let original = try? await fetch(finding) else {
            return nil
        }
        return await render.cached(original).map { ImageResponse($0) }
    }

    /// The variant decoded to sRGB RGBA, for callers that display it. With a budget (`memory.pixels`, off by default)
    /// decoded pixels are kept for as long as the variant is valid; freshness is still checked for every request.
    public func pixels(for request: ImageRequest) async throws(PipelineError) -> PixelBuffer {
        let generation = tiers.pixels.generation
        let response = try await respond(to: request)
        if let kept = tiers.decoded(response.digest) { return kept }
        do throws(RenderError) {
            let header = try ImageHeader.probe(response.bytes)
            let recipe = Recipe()
            let began = ContinuousClock.now
            var limits = limits
            // `decoders` restricts originals, not the variants this pipeline has written.
            if request.recipe != nil { limits.formats.formUnion(ImageFormat.decodable) }
            let pixels = try await renderer.pixels(
                RenderJob(
                    original: response.bytes, header: header, recipe: recipe,
                    output: recipe.resolvedOutput(for: header), limits: limits))
            if response.isStorable {
                tiers.keep(
                    pixels, response.digest, of: response.record.digest,
                    milliseconds: began.duration(to: .now).milliseconds, generation: generation)
            }
            return pixels
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

    /// Removes a source's records, bodies and all their variants from disk and memory, including the memory of other
    /// processes that share the cache folder.
    public func purge(_ source: ImageSource, sourceID: String? = nil) async throws(PipelineError) -> PurgeResult {
        var request = ImageRequest(source)
        request.sourceID = sourceID
        return try await purge(name: AdmitStage.identify(request).source)
    }

    /// Purges a source by its `OriginalRecord.source` name: a normalised URL, `file:` and an absolute path, `id:` and a
    /// `sourceID`, or `bytes:` and the SHA-256 of the given bytes.
    public func purge(name: String) async throws(PipelineError) -> PurgeResult {
        do throws(StoreError) { return try await tiers.purge(source: name) } catch { throw PipelineError(error) }
    }

    /// Purges many sources at once, by URL prefix or by host. The time it takes grows with what it removes.
    /// Work in flight when it starts is not stored, whatever its source.
    public func purge(_ selection: SourceSelection) async throws(PipelineError) -> PurgeResult {
        do throws(StoreError) { return try await tiers.purge(selection) } catch { throw PipelineError(error) }
    }

    /// Counters of the disk tiers; nil without a cache folder.
    public func diskStatistics() async -> (originals: StoreCounters, variants: StoreCounters, records: StoreCounters)? {
        let tiers = tiers
        // A disk error has been counted and reported already; there is nothing to return.
        return await threads.run { try? tiers.disk?.statistics() }
    }

    /// Counters of the memory tiers.
    public var memoryStatistics:
        (originals: StoreCounters, variants: StoreCounters, pixels: StoreCounters, records: StoreCounters)
    {
        (tiers.originals.counters, tiers.variants.counters, tiers.pixels.counters, tiers.memory.records.counters)
    }

    /// Counters of work shared with other processes on the cache folder.
    public var sharingStatistics: SharingCounters { tiers.locks?.counters ?? SharingCounters() }

    /// Counters of background validations.
    public var backgroundStatistics: BackgroundCounters { background.counters }

    /// Waits until background validations and abandoned requests that run to completion have finished, and everything
    /// answered so far is stored.
    public func drain() async {
        await abandoned.drain()
        await changes.drain()
        await background.drain()
        await tiers.drain()
    }

    /// Waits for abandoned requests that run to completion and for background validations (`fetch.totalSeconds` and
    /// `limits.seconds` bound both), starts no more, writes what is queued, then stops every thread. The pipeline
    /// answers nothing afterwards.
    public func shutdown() async {
        pressure?.stop()
        await abandoned.drain()
        await changes.drain()
        await background.close()
        await renderer.shutdown()
        await tiers.close()
        await transport.shutdown()
        await threads.stopped()
    }
}

extension ImageResponse {
    init(_ variant: Variant) {
        let original = variant.original
        bytes = variant.bytes
        mediaType = variant.format.mediaType
        format = variant.format
        width = variant.width
        height = variant.height
        digest = variant.digest
        key = variant.entry?.key
        created = variant.entry?.created
        forward = original.forward
        forwardStatus = original.forwardStatus
        isStorable = original.mayStore
        outcome = variant.outcome
        originalOutcome = original.outcome
        isCollapsed = variant.isCollapsed || original.isCollapsed
        isStale = original.isStale
        record = original.record
        timings = variant.timings
        timings.fetch = original.fetchMilliseconds
        timings.total = max(0, original.admitted.began.duration(to: .now).milliseconds - timings.queue)
    }
}
