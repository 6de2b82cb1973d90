import PipelineCaching
import PipelineSupport
import Variants

/// Renders the variant of an original.
struct RenderStage: Sendable {
    let renderer: any Rendering
    let libraries: KnownLibraries
    let quality: RenderQuality
    let light: RenderLight
    let effort: RenderEffort
    let outputs: OutputDefaults
    let limits: RenderLimits
    let threads: OwnedThreads
    let codings: UndoneCodings
    let backlog: Backlog
    /// Unix seconds.
    let now: @Sendable () -> Double
    /// Logs what costs no answer.
    let warn: @Sendable (String) -> Void

    /// What is to be rendered, and the key of the result.
    struct Plan: Sendable {
        var header: ImageHeader
        var recipe: Recipe
        var output: ResolvedOutput
        var libraries: RenderLibraries
        var key: String
    }

    /// Throws unless the original's header is known: it is not an image, or its body is needed to tell why.
    func plan(
        _ recipe: Recipe, of original: Original, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> Plan {
        try plan(recipe, of: original, admitted, with: await libraries())
    }

    func plan(
        _ recipe: Recipe, of original: Original, _ admitted: AdmittedRequest, with libraries: RenderLibraries
    ) throws(PipelineError) -> Plan {
        let header = try header(of: original, admitted)
        let output = recipe.resolvedOutput(
            for: header, negotiated: admitted.request.negotiated, with: libraries, effort: effort,
            defaults: outputs)
        var plan = Plan(header: header, recipe: recipe, output: output, libraries: libraries, key: "")
        plan.key = key(plan, libraries, original, admitted)
        return plan
    }

    private func key(
        _ plan: Plan, _ libraries: RenderLibraries, _ original: Original, _ admitted: AdmittedRequest
    ) -> String {
        CacheKey.variant(
            originalDigest: original.record.digest, recipe: plan.recipe, output: plan.output, quality: quality,
            light: light, frames: plan.recipe.decodedFrames(of: plan.header, into: plan.output.format),
            masks: admitted.masks.mapValues(\.digest), revision: RenderRevision.text(libraries))
    }

    /// - Parameter original: with its body.
    func callAsFunction(
        _ plan: Plan, of original: Original, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> Variant {
        var job = RenderJob(
            original: Self.encoded(original.body), header: plan.header, recipe: plan.recipe, output: plan.output,
            quality: quality, limits: limits, masks: admitted.masks.mapValues(\.bytes))
        job.light = light
        job.digest = original.record.digest
        // What is stored beside a whole picture gives way to it.
        if original.record.isOnTrial { job.limits.damaged = .refuse }
        let began = ContinuousClock.now
        let rendered = try await backlog.run(admitted.request.priority) { [job] () async throws(PipelineError) in
            do throws(RenderError) {
                var job = job
                if ContentCodings(original.record.response.fields) != nil { job.original = try await coded(original) }
                return try await renderer.render(job)
            } catch {
                throw PipelineError(error, source: admitted.displayName)
            }
        }
        if plan.header.format == .svg { await warnOfWrongDrawing(original, plan.header, admitted) }
        let digest = sha256Hex(rendered.bytes)
        // If the libraries were updated since the plan was made, what they made is stored under the key that is looked up
        // from now on.
        let made = plan.libraries == .unknown ? nil : rendered.libraries
        let entry = VariantEntry(
            key: made.map { key(plan, $0, original, admitted) } ?? plan.key, originalDigest: original.record.digest,
            digest: digest, length: rendered.bytes.count,
            format: rendered.format, width: rendered.width, height: rendered.height, recipe: plan.recipe.description,
            cost: rendered.cpuMilliseconds, created: now())
        var variant = Variant(
            bytes: rendered.bytes, entry: rendered.isDamaged ? nil : entry, format: rendered.format,
            width: rendered.width, height: rendered.height, digest: digest, outcome: .rendered,
            isDamaged: rendered.isDamaged)
        let working = rendered.milliseconds
        variant.timings.decode = working.decode
        variant.timings.operations = working.operations
        variant.timings.encode = working.encode
        variant.timings.queue = max(
            0, began.duration(to: .now).milliseconds - working.decode - working.operations - working.encode)
        return variant
    }

    /// Logs the features of a drawing that its variant shows wrong.
    private func warnOfWrongDrawing(_ original: Original, _ header: ImageHeader, _ admitted: AdmittedRequest) async {
        // The original has just been read; if it cannot be read again, only this line is lost.
        guard let bytes = try? await picture(original) else { return }
        let features = await threads.run { ImageDetails.read(bytes, header).unsupportedFeatures }
        guard !features.isEmpty else { return }
        warn("\(admitted.displayName): drawn wrong, since librsvg does not support \(features.joined(separator: ", "))")
    }

    /// The original itself as the answer to a request without a recipe.
    ///
    /// - Parameter original: with its body.
    func whole(_ original: Original, _ admitted: AdmittedRequest) async throws(PipelineError) -> Variant {
        let bytes: [UInt8]
        do throws(RenderError) { bytes = try await picture(original) } catch {
            throw PipelineError(error, source: admitted.displayName)
        }
        return try whole(original, bytes, admitted)
    }

    /// - Parameter bytes: of the body, without content codings.
    func whole(
        _ original: Original, _ bytes: [UInt8], _ admitted: AdmittedRequest
    ) throws(PipelineError) -> Variant {
        let header = try header(of: original, admitted)
        let isStored = original.outcome != .none && original.outcome == original.tier
        let outcome = isStored ? Outcome(rawValue: original.tier.rawValue) : .original
        return Variant(
            bytes: bytes, entry: nil, format: header.format, width: header.width, height: header.height,
            digest: ContentCodings(original.record.response.fields) == nil ? original.record.digest : sha256Hex(bytes),
            outcome: outcome)
    }

    /// A coded body, undone now to learn how long it is. If it is too long to be kept, it is undone again when its render
    /// begins, so that queued renders take no memory.
    private func coded(_ original: Original) async throws(RenderError) -> EncodedBytes {
        let (fields, digest) = (original.record.response.fields, original.record.digest)
        guard let body = original.body else { return EncodedBytes([]) }
        let count = try await codings.picture(body, digest, fields).count
        return EncodedBytes(count: count) { [codings] in codings.pictureAgain(body, digest, fields) }
    }

    /// The bytes without content codings.
    private func picture(_ original: Original) async throws(RenderError) -> [UInt8] {
        guard let body = original.body else { return [] }
        return try await codings.picture(body, original.record.digest, original.record.response.fields)
    }

    /// The original with its header. If its record has none, and its body is in a file or coded, the body is read on a
    /// thread of our own, to find out why it is not an image.
    func withHeader(_ original: Original, _ admitted: AdmittedRequest) async throws(PipelineError) -> Original {
        guard original.record.header == nil, let body = original.body else { return original }
        let fields = original.record.response.fields
        if case .bytes = body, ContentCodings(fields) == nil { return original }
        do throws(RenderError) {
            var original = original
            original.record.header = try await codings.header(body, original.record.digest, fields)
            return original
        } catch {
            throw PipelineError(error, source: admitted.displayName)
        }
    }

    private func header(of original: Original, _ admitted: AdmittedRequest) throws(PipelineError) -> ImageHeader {
        if let header = original.record.header { return header }
        // The record does not say why there is no image; the body, if it is loaded, does.
        guard case .bytes(let bytes)? = original.body else {
            throw PipelineError(.notAnImage, "\(admitted.displayName): not an image in a format this pipeline reads")
        }
        do throws(RenderError) { return try ImageHeader.probe(bytes) } catch {
            throw PipelineError(error, source: admitted.displayName)
        }
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
}

extension Duration {
    var milliseconds: Double {
        Double(components.seconds) * 1e3 + Double(components.attoseconds) / 1e15
    }
}
