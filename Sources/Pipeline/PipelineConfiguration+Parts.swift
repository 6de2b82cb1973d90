import Glibc
import PipelineCaching
import PipelineFetching
import PipelineSupport
import Variants

// Creates the parts of a pipeline from its configuration.

extension PipelineConfiguration {
    /// The configuration of fetches, including the folder for long bodies.
    var fetching: FetchConfiguration {
        var fetching = fetch
        fetching.byteLimit = rendering.limits.bytes
        if fetching.spoolFolder == nil, let folder = cacheFolder {
            fetching.spoolFolder = folder
            fetching.spoolFloor = disk.freeSpace ?? FileSystemSpace(holding: folder)?.ordinaryFloor ?? 0
        }
        return fetching
    }

    /// Returns a monitor of the machine's memory pressure, or nil if `yieldsToMemoryPressure` is false, or if the
    /// budgets are too small to justify a waiting thread.
    func memoryPressure(_ tiers: Tiers) -> MemoryPressure? {
        guard yieldsToMemoryPressure, memory.originals + memory.variants + memory.pixels >= 64_000_000 else {
            return nil
        }
        return MemoryPressure(MemoryPressure.opened(MachineMemory.pressureFiles)) { tiers.yieldMemory() }
    }
}

extension RenderingConfiguration {
    /// Returns the renderer that the program supplied, or creates one according to `isolation`.
    func madeRenderer(_ observe: Observer) -> any Rendering {
        if let renderer { return renderer }
        switch isolation {
        case .inProcess:
            if let libvips { VipsLibrary.choose(libvips) }
            return InProcessRenderer(
                maxConcurrentRenders: maxConcurrentRenders ?? Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) + 1,
                formats: inProcessFormats, longRenders: longRenders)
        case .workers(var workers):
            workers.longRenders = longRenders
            workers.libvips = libvips
            workers.drawsText = limits.formats.contains(.svg)
            workers.warn = { [warn = workers.warn] message in
                warn(message)
                observe.warn(message, stage: .render)
            }
            return WorkerPool(workers)
        }
    }
}

extension RenderingConfiguration {
    /// Returns the renderer for second passes: a single worker, which runs only on idle processors. Returns nil if there
    /// is no second pass.
    func madeSecondRenderer(_ observe: Observer) -> (any Rendering)? {
        guard secondPass.cpuShare > 0 else { return nil }
        if let renderer { return renderer }
        guard case .workers(var workers) = isolation else { return nil }
        (workers.maxConcurrentRenders, workers.isPrewarmed, workers.isBackground) = (1, false, true)
        var configuration = self
        configuration.isolation = .workers(workers)
        configuration.longRenders = 1
        return configuration.madeRenderer(observe)
    }
}

extension PipelineConfiguration {
    func secondPass(_ tiers: Tiers, _ render: RenderStage) -> SecondPass? {
        guard render.secondRenderer != nil else { return nil }
        let backlog = render.backlog
        return SecondPass(
            rendering.secondPass, accesses: { tiers.variants.accesses(of: $0) },
            isIdle: { backlog.count == 0 })
    }
}

/// The transports of a pipeline.
struct Transports {
    let byScheme: [String: any Transport]
    /// The schemes that only the program's own transports and providers can fetch.
    let ownSchemes: Set<String>
    /// The transport for files in folders.
    let files: FileTransport

    init(_ configuration: PipelineConfiguration, _ fetching: FetchConfiguration, threads: OwnedThreads) {
        let origins = RetryingTransport(CurlTransport(fetching), configuration: fetching)
        var files = FileTransport(byteLimit: configuration.rendering.limits.bytes, threads: threads)
        files.bounds = configuration.fileBounds
        let builtIn: [String: any Transport] = [
            "http": origins, "https": origins, "s3": S3Transport(origins, configuration.s3), "file": files,
        ]
        let providers = configuration.providers.filter { builtIn[$0.key] == nil }
            .mapValues { ProviderTransport($0, fetching, threads: threads) as any Transport }
        byScheme = builtIn.merging(configuration.transports.merging(providers) { $1 }) { $1 }
        // Names of records begin with `id` and `bytes`, so these cannot be schemes.
        ownSchemes = Set(byScheme.keys).subtracting(builtIn.keys).subtracting(["id", "bytes"])
        self.files = files
    }
}

extension Observer {
    convenience init(_ configuration: PipelineConfiguration) {
        self.init(logger: configuration.logger, metrics: configuration.metrics, tracer: configuration.tracer)
    }
}

extension AdmitStage {
    init(
        _ configuration: PipelineConfiguration, _ transports: Transports, threads: OwnedThreads,
        isShutDown: @escaping @Sendable () -> Bool
    ) {
        self.init(
            masks: MaskFolder(configuration.rendering.masks),
            overlays: MaskFolder(configuration.rendering.overlays, of: .overlay), threads: threads,
            files: transports.files,
            transports: transports.byScheme, ownSchemes: transports.ownSchemes, policy: configuration.policy,
            names: SourceNames(configuration.fetch.hosts), sources: configuration.fetch.sources,
            isShutDown: isShutDown)
    }
}

extension FetchStage {
    init(
        _ configuration: PipelineConfiguration, _ purger: Purger, _ codings: ContentDecoder, _ renderer: any Rendering,
        threads: OwnedThreads, _ observe: Observer
    ) {
        let caching = configuration.caching
        self.init(
            tiers: purger.tiers, purger: purger, backlog: Backlog("fetches", limit: configuration.maxWaiting),
            caching: caching,
            freshness: configuration.fetch.hosts.mapValues(\.freshness).filter { $0.value != HostFreshness() },
            acceptedTypes: configuration.acceptedTypes, byteLimit: configuration.rendering.limits.bytes,
            threads: threads,
            codings: codings, failures: FailureMemory(maxAge: caching.errorMaxAge, attempts: caching.errorAttempts),
            // Starting a worker takes about as long as a response from many origins, so start it during the fetch.
            willRender: { [pool = renderer as? WorkerPool] in pool?.startFirst() },
            traceFields: { observe.traceFields }, willSend: configuration.willSend.map { RequestHook($0) },
            now: configuration.now)
    }
}

extension RenderStage {
    init(
        _ configuration: PipelineConfiguration, _ codings: ContentDecoder, _ renderer: any Rendering,
        threads: OwnedThreads, _ observe: Observer
    ) {
        let rendering = configuration.rendering
        self.init(
            renderer: renderer, secondRenderer: rendering.madeSecondRenderer(observe),
            libraries: KnownLibraries(
                renderer, folder: configuration.cacheFolder, libvips: rendering.libvips, threads: threads),
            quality: rendering.quality, light: rendering.light, effort: rendering.effort,
            outputs: rendering.outputs, limits: rendering.limits, threads: threads, codings: codings,
            backlog: Backlog("renders", limit: configuration.maxWaiting), now: configuration.now,
            warn: { observe.warn($0, stage: .render) })
    }
}
