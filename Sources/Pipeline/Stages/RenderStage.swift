import PipelineCaching
import PipelineSupport
import Variants

/// Renders variants of originals.
struct RenderStage: Sendable {
    let renderer: any Rendering
    /// The renderer of second passes, or nil if the configuration turns them off.
    let secondRenderer: (any Rendering)?
    let libraries: KnownLibraries
    let quality: RenderQuality
    let light: RenderLight
    let effort: RenderEffort
    let outputs: OutputDefaults
    let limits: RenderLimits
    let threads: OwnedThreads
    let codings: ContentDecoder
    let backlog: Backlog
    /// Returns the current time in Unix seconds.
    let now: @Sendable () -> Double
    /// Logs an error that does not fail the request.
    let warn: @Sendable (String) -> Void

    /// The parameters of a render, and the key of the resulting variant.
    struct Plan: Sendable {
        var header: ImageHeader
        var recipe: Recipe
        var output: ResolvedOutput
        var libraries: RenderLibraries
        var key: String
        /// Whether a second pass may replace the variant.
        var isRefinable: Bool
        /// The key of the same variant for clients and recipes that do not accept the formats of a second pass, or nil if
        /// `key` is this key.
        var commonKey: String?
    }

    /// Plans a render. Throws if the header of the original is not known, because the original is not an image or its
    /// body is needed to explain why.
    func plan(
        _ recipe: Recipe, of original: Original, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> Plan {
        try plan(recipe, of: original, admitted, with: await libraries())
    }

    func plan(
        _ recipe: Recipe, of original: Original, _ admitted: AdmittedRequest, with libraries: RenderLibraries
    ) throws(PipelineError) -> Plan {
        let first = try header(of: original, admitted)
        guard let header = first.page(recipe.page) else {
            throw PipelineError(
                .notFound,
                "\(admitted.displayName): there is no page \(recipe.page); \(first.furtherPages.count + 1) can be selected"
            )
        }
        // A second pass keeps the request. It should not keep the bytes of uploads, masks and overlays.
        let isUpload = if case .bytes = admitted.request.source { true } else { false }
        let hasSecondPass = secondRenderer != nil && !isUpload && admitted.masks.isEmpty
        let output = recipe.resolvedOutput(
            for: header, negotiated: admitted.request.negotiated, with: libraries, effort: effort,
            defaults: outputs, svg: limits.svg, hasSecondPass: hasSecondPass)
        let isAsked = recipe.leavesFormatOpen || admitted.request.makesSecondPass
        let isRefinable = hasSecondPass && isAsked && !output.secondFormats.isEmpty
        var plan = Plan(
            header: header, recipe: recipe, output: output, libraries: libraries, key: "", isRefinable: isRefinable)
        plan.key = key(plan, libraries, original, admitted)
        if !output.alternatives.isEmpty {
            var common = plan
            common.output.alternatives = []
            plan.commonKey = key(common, libraries, original, admitted)
        }
        return plan
    }

    private func key(
        _ plan: Plan, _ libraries: RenderLibraries, _ original: Original, _ admitted: AdmittedRequest
    ) -> String {
        var masks = admitted.masks
        if admitted.request.choice != nil, !masks.isEmpty {
            // A choice may name overlays that the settled recipe does not use.
            let used = Set(plan.recipe.overlayNames.map(Recipe.overlayKey))
            masks = masks.filter { used.contains($0.key) }
        }
        return CacheKey.variant(
            originalDigest: original.record.digest, recipe: plan.recipe, output: plan.output, quality: quality,
            light: light, frames: plan.recipe.decodedFrames(of: plan.header, into: plan.output.format),
            masks: masks.mapValues(\.digest), revision: RenderRevision.text(libraries))
    }

    /// Renders a variant.
    ///
    /// - Parameter original: an original with its body.
    func callAsFunction(
        _ plan: Plan, of original: Original, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> Variant {
        let began = ContinuousClock.now
        let rendered = try await backlog.run(admitted.request.priority) { () async throws(PipelineError) in
            try await render(job(plan, original, admitted), of: original, admitted, by: renderer)
        }
        if plan.header.format == .svg, rendered.format != .svg {
            await warnOfWrongDrawing(original, plan.header, admitted)
        }
        if let reason = plan.recipe.refusedTranscoding(of: plan.header) ?? rendered.reencodingReason {
            warn("\(admitted.displayName): the pixels were encoded instead of transcoding the file, because \(reason)")
        }
        let digest = sha256Hex(rendered.bytes)
        // If the libraries have been updated since the plan was made, the variant is stored under the key that later
        // requests will look up.
        let made = plan.libraries == .unknown ? nil : rendered.libraries
        let entry = VariantEntry(
            key: made.map { key(plan, $0, original, admitted) } ?? plan.key, originalDigest: original.record.digest,
            digest: digest, length: rendered.bytes.count,
            format: rendered.format, width: rendered.width, height: rendered.height, recipe: plan.recipe.description,
            cost: rendered.cpuTime.milliseconds, created: now())
        var variant = Variant(
            bytes: rendered.bytes, entry: rendered.isDamaged ? nil : entry, format: rendered.format,
            width: rendered.width, height: rendered.height, digest: digest, outcome: .rendered,
            isDamaged: rendered.isDamaged)
        let working = rendered.timings
        variant.timings.decode = working.decode
        variant.timings.operations = working.operations
        variant.timings.encode = working.encode
        variant.timings.queue = max(
            .zero, began.duration(to: .now) - working.decode - working.operations - working.encode)
        variant.isRefinable = plan.isRefinable
        return variant
    }

    private func job(_ plan: Plan, _ original: Original, _ admitted: AdmittedRequest) -> RenderJob {
        var job = RenderJob(
            original: Self.encoded(original.body), header: plan.header, recipe: plan.recipe, output: plan.output,
            quality: quality, limits: limits, masks: admitted.masks.mapValues(\.bytes))
        job.light = light
        job.digest = original.record.digest
        // A damaged replacement must not displace an intact picture.
        if original.record.isProvisional { job.limits.acceptsDamaged = false }
        return job
    }

    private func render(
        _ job: RenderJob, of original: Original, _ admitted: AdmittedRequest, by renderer: any Rendering
    ) async throws(PipelineError) -> RenderedVariant {
        do throws(RenderError) {
            var job = job
            if ContentCodings(original.record.response.fields) != nil {
                job.original = try await decodedBytes(original)
            }
            return try await renderer.render(job)
        } catch {
            throw PipelineError(error, source: admitted.displayName)
        }
    }

    /// Encodes a variant again with more effort.
    ///
    /// - Parameters:
    ///   - original: an original with its body.
    ///   - first: the variant to replace, with its bytes.
    /// - Returns: the new version, or the first version if no other is smaller. The entry is nil if the libraries have
    ///   been updated.
    func secondPass(
        _ plan: Plan, of original: Original, _ admitted: AdmittedRequest, replacing first: VariantEntry,
        _ bytes: [UInt8]
    ) async throws(PipelineError) -> Variant {
        // A caller that waits for the second pass uses the workers that serve clients.
        guard let renderer = admitted.request.makesSecondPass ? renderer : secondRenderer else { throw .cancelled }
        var job = job(plan, original, admitted)
        job.output.isSecondPass = true
        job.masks[RenderJob.firstVersionKey] = bytes
        job.limits.acceptsDamaged = false
        let rendered = try await render(job, of: original, admitted, by: renderer)
        var entry = first
        entry.firstLength = first.length
        var (kept, format) = (bytes, first.format ?? plan.output.format)
        if SecondPass.isWorthwhile(rendered.bytes.count, insteadOf: first.length) {
            (kept, format) = (rendered.bytes, rendered.format)
            (entry.digest, entry.length) = (sha256Hex(kept), kept.count)
            (entry.mediaType, entry.created) = (format.mediaType, now())
        }
        let made = plan.libraries == .unknown ? nil : rendered.libraries
        let isCurrent = made.map { key(plan, $0, original, admitted) == plan.key } ?? true
        var variant = Variant(
            bytes: kept, entry: isCurrent ? entry : nil, format: format, width: rendered.width,
            height: rendered.height, digest: entry.digest, outcome: .rendered)
        variant.secondsOfCPU = rendered.cpuTime.inSeconds
        return variant
    }

    /// Logs the features of a drawing that its variant does not show correctly.
    private func warnOfWrongDrawing(_ original: Original, _ header: ImageHeader, _ admitted: AdmittedRequest) async {
        // The original has just been read. If it cannot be read again, only this warning is lost.
        guard let bytes = try? await picture(original) else { return }
        let features = await threads.run { ImageDetails.read(bytes, header).unsupportedFeatures }
        guard !features.isEmpty else { return }
        warn(
            "\(admitted.displayName): rendered incorrectly, because librsvg does not support \(features.joined(separator: ", "))"
        )
    }

    /// Returns the original itself, for a request without a recipe.
    ///
    /// - Parameter original: an original with its body.
    func unmodified(_ original: Original, _ admitted: AdmittedRequest) async throws(PipelineError) -> Variant {
        let bytes: [UInt8]
        do throws(RenderError) { bytes = try await picture(original) } catch {
            throw PipelineError(error, source: admitted.displayName)
        }
        return try unmodified(original, bytes, admitted)
    }

    /// - Parameter bytes: the body, without content codings.
    func unmodified(
        _ original: Original, _ bytes: [UInt8], _ admitted: AdmittedRequest
    ) throws(PipelineError) -> Variant {
        let header = try header(of: original, admitted)
        return Variant(
            bytes: bytes, entry: nil, format: header.format, width: header.width, height: header.height,
            digest: ContentCodings(original.record.response.fields) == nil ? original.record.digest : sha256Hex(bytes),
            outcome: original.outcome == original.tier ? original.tier ?? .original : .original)
    }

    /// Decodes the content codings of a body to determine its length. If the result is too long to be kept, the body is
    /// decoded again when its render begins, so that queued renders use no memory.
    private func decodedBytes(_ original: Original) async throws(RenderError) -> EncodedBytes {
        let (fields, digest) = (original.record.response.fields, original.record.digest)
        guard let body = original.body else { return EncodedBytes([]) }
        let count = try await codings.picture(body, digest, fields).count
        return EncodedBytes(count: count) { [codings] in codings.decodedAgain(body, digest, fields) }
    }

    /// Returns the bytes of an original without content codings.
    private func picture(_ original: Original) async throws(RenderError) -> [UInt8] {
        guard let body = original.body else { return [] }
        return try await codings.picture(body, original.record.digest, original.record.response.fields)
    }

    /// Returns the original with its header. If the record has no header, and the body is in a file or has content
    /// codings, reads the body on an owned thread to find out why it is not an image.
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

    /// Returns the header of an original. Throws if the original is not an image, or an SVG that the configuration
    /// refuses.
    func header(of original: Original, _ admitted: AdmittedRequest) throws(PipelineError) -> ImageHeader {
        let header = try anyHeader(of: original, admitted)
        guard header.format == .svg, limits.svg == .refuse else { return header }
        throw PipelineError(
            RenderError(
                .unsupportedFormat,
                "SVG originals are refused, because the setting `svg` is `refuse`; convert the picture"),
            source: admitted.displayName)
    }

    private func anyHeader(of original: Original, _ admitted: AdmittedRequest) throws(PipelineError) -> ImageHeader {
        if let header = original.record.header { return header }
        // The record does not say why the original is not an image. The body does, if it is loaded.
        guard case .bytes(let bytes)? = original.body else {
            throw PipelineError(.notAnImage, "\(admitted.displayName): not an image in a supported format")
        }
        do throws(RenderError) { return try ImageHeader.probe(bytes) } catch {
            throw PipelineError(error, source: admitted.displayName)
        }
    }

    /// Returns the encoded bytes of a body. A body in a file is read when its render begins, so that queued renders use
    /// no memory.
    private static func encoded(_ body: EntryBody?) -> EncodedBytes {
        switch body {
        case nil: EncodedBytes([])
        case .bytes(let bytes)?: EncodedBytes(bytes)
        case .file(let file)?:
            EncodedBytes(count: file.count, read: { file.bytes() }, open: { file.reopenedForReading() })
        }
    }
}
