import PipelineCaching
import PipelineSupport
import Variants

/// Provides the variant of an original: stored, or rendered once for all requests that want it now.
struct RenderStage: Sendable {
    let tiers: CacheTiers
    let renderer: any Rendering
    let quality: RenderQuality
    let limits: RenderLimits
    let flights: Flights<Variant>
    /// Fetches a body that was evicted while its record stayed.
    let fetch: FetchStage
    let store: StoreStage
    /// Unix seconds.
    let now: @Sendable () -> Double

    func callAsFunction(_ original: Original) async throws(PipelineError) -> Variant {
        guard let recipe = original.admitted.request.recipe else { return try await whole(original) }
        // Only the body tells why it is not an image, and it may not have been loaded with the record.
        let original = original.record.header == nil ? try await withHeader(fetch.withBody(original)) : original
        let key = try plan(original, recipe).key
        if let variant = await stored(key, of: original) { return variant }
        let request = original.admitted.request
        let (shared, isCollapsed) = try await flights.value(
            for: "\(key)|\(original.mayStore)|\(request.storage.rawValue)", priority: request.priority,
            finishWhenAbandoned: request.finishWhenAbandoned
        ) { () async throws(PipelineError) -> Variant in
            try await render(original, recipe, key: key)
        }
        guard isCollapsed else { return shared }
        var variant = shared
        variant.original = original
        variant.isCollapsed = true
        return variant
    }

    /// The stored variant, or the stored original without a recipe; nil if there is neither.
    func cached(_ original: Original) async -> Variant? {
        guard let recipe = original.admitted.request.recipe else {
            guard let (body, _) = await tiers.originalBody(original.record.digest, of: original.record) else {
                return nil
            }
            var whole = original
            whole.body = body
            return try? await self.whole(whole)
        }
        guard let plan = try? plan(original, recipe) else { return nil }
        return await stored(plan.key, of: original)
    }

    private struct Plan: Sendable {
        var header: ImageHeader
        var output: ResolvedOutput
        var key: String
    }

    /// The key and output of a variant; nil if the original's record does not suffice to tell.
    func identity(of original: Original, _ recipe: Recipe) -> (key: String, output: ResolvedOutput)? {
        guard let plan = try? plan(original, recipe) else { return nil }
        return (plan.key, plan.output)
    }

    private func plan(_ original: Original, _ recipe: Recipe) throws(PipelineError) -> Plan {
        let admitted = original.admitted
        let header = try knownHeader(of: original)
        let output = recipe.resolvedOutput(for: header, negotiated: admitted.request.negotiated)
        let key = CacheKey.variant(
            originalDigest: original.record.digest, recipe: recipe, output: output, quality: quality,
            frames: recipe.decodedFrames(of: header, into: output.format), masks: admitted.masks.mapValues(\.digest))
        return Plan(header: header, output: output, key: key)
    }

    private func knownHeader(of original: Original) throws(PipelineError) -> ImageHeader {
        if let header = original.record.header { return header }
        // The record does not say why there is no image; the body, if it is loaded, does.
        if case .bytes(let bytes)? = original.body {
            do throws(RenderError) {
                return try ImageHeader.probe(bytes)
            } catch {
                throw PipelineError(error, source: original.admitted.displayName)
            }
        }
        throw PipelineError(
            .notAnImage, "\(original.admitted.displayName): not an image in a format this pipeline reads")
    }

    /// The original. If its record has no header and its body is in a file, the file is read on a thread of our own, to
    /// find out why it is not an image.
    private func withHeader(_ original: Original) async throws(PipelineError) -> Original {
        guard original.record.header == nil, case .file(let file)? = original.body else { return original }
        let probed = await fetch.threads.run {
            Result { () throws(RenderError) in
                guard let bytes = file.bytes() else { throw RenderError(.undecodable, EntryBody.lost) }
                return try ImageHeader.probe(bytes)
            }
        }
        do throws(RenderError) {
            var original = original
            original.record.header = try probed.get()
            return original
        } catch {
            throw PipelineError(error, source: original.admitted.displayName)
        }
    }

    private func stored(_ key: String, of original: Original, again: Bool = false) async -> Variant? {
        guard let (stored, tier) = await tiers.variant(key, of: original.record.digest, again: again),
            let format = stored.entry.format
        else { return nil }
        let entry = stored.entry
        return Variant(
            original: original, bytes: stored.body, entry: entry, format: format, width: entry.width,
            height: entry.height, digest: entry.digest, outcome: Outcome(tier))
    }

    private func render(_ found: Original, _ recipe: Recipe, key: String) async throws(PipelineError) -> Variant {
        // Another render may have finished between the look-up and this one's start.
        if let variant = await stored(key, of: found, again: true) { return variant }
        // Get the body before taking the variant's lock: no process waits for an original while it holds a variant.
        let original = try await withHeader(fetch.withBody(found))
        let plan = try plan(original, recipe)
        if plan.key != key, let variant = await stored(plan.key, of: original) { return variant }
        guard original.mayStore, original.admitted.request.storage.contains(.variantsOnDisk) else {
            return try await make(plan, of: original, recipe)
        }
        return try await tiers.once(.variant, plan.key) {
            await stored(plan.key, of: original, again: true)
        } check: { _ in
            let (key, digest) = (plan.key, original.record.digest)
            return { disk throws(StoreError) in try disk.holdsVariant(key: key, of: digest) }
        } work: { () async throws(PipelineError) -> Variant in
            try await make(plan, of: original, recipe)
        }
    }

    private func make(_ plan: Plan, of original: Original, _ recipe: Recipe) async throws(PipelineError) -> Variant {
        let request = original.admitted.request
        var job = RenderJob(
            original: Self.encoded(original.body), header: plan.header, recipe: recipe, output: plan.output,
            quality: quality,
            limits: limits, masks: original.admitted.masks.mapValues(\.bytes))
        if !request.companions.isEmpty { job.shared = shared(by: job, request, original.record.digest) }
        let began = ContinuousClock.now
        let rendered: RenderedVariant
        do throws(RenderError) {
            rendered = try await renderer.render(job)
        } catch {
            throw PipelineError(error, source: original.admitted.displayName)
        }
        let digest = sha256Hex(rendered.bytes)
        let entry = VariantEntry(
            key: plan.key, originalDigest: original.record.digest, digest: digest, length: rendered.bytes.count,
            format: rendered.format, width: rendered.width, height: rendered.height, recipe: recipe.description,
            cost: rendered.cpuMilliseconds, created: now())
        var variant = Variant(
            original: original, bytes: rendered.bytes, entry: entry, format: rendered.format, width: rendered.width,
            height: rendered.height, digest: digest, outcome: .rendered)
        let working = rendered.milliseconds
        variant.timings.decode = working.decode
        variant.timings.operations = working.operations
        variant.timings.encode = working.encode
        variant.timings.queue = max(
            0, began.duration(to: .now).milliseconds - working.decode - working.operations - working.encode)
        let storing = ContinuousClock.now
        store(variant)
        variant.timings.store = storing.duration(to: .now).milliseconds
        return variant
    }

    /// The decode that the job shares with its companions. It depends neither on which of them are stored already nor
    /// on their order, so that the same requests always give the same bytes.
    private func shared(by job: RenderJob, _ request: ImageRequest, _ digest: String) -> SharedDecode? {
        var seen: Set<String> = []
        let jobs = ([job.recipe] + request.companions).filter { seen.insert($0.description).inserted }.map { recipe in
            RenderJob(
                original: [], header: job.header, recipe: recipe,
                output: recipe.resolvedOutput(for: job.header, negotiated: request.negotiated), quality: quality)
        }
        guard let shared = SharedDecode(of: jobs, named: digest), shared.includes(job) else { return nil }
        return shared
    }

    /// A body in a file is read when its render begins, so that queued renders take no memory.
    private static func encoded(_ body: EntryBody?) -> EncodedBytes {
        switch body {
        case nil: EncodedBytes([])
        case .bytes(let bytes)?: EncodedBytes(bytes)
        case .file(let file)?:
            EncodedBytes(count: file.count, read: { file.bytes() }, open: { file.reopenedForReading() })
        }
    }

    /// The original itself.
    private func whole(_ found: Original) async throws(PipelineError) -> Variant {
        let original = try await withHeader(fetch.withBody(found))
        let header = try knownHeader(of: original)
        let outcome: Outcome =
            switch original.outcome {
            case .memory: .memory
            case .disk: .disk
            default: .original
            }
        return Variant(
            original: original, bytes: try await fetch.bytes(of: original), entry: nil, format: header.format,
            width: header.width,
            height: header.height, digest: original.record.digest, outcome: outcome)
    }
}

extension Duration {
    var milliseconds: Double {
        Double(components.seconds) * 1e3 + Double(components.attoseconds) / 1e15
    }
}
