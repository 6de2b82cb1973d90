import PipelineCaching
import PipelineFetching
import Variants

extension ImagePipeline {
    /// Throws the error that this request would fail with, if that can be predicted without contacting an origin or
    /// rendering. Examples are a file that cannot be read or is not an image, an address that the policy refuses, and
    /// an image over a limit.
    ///
    /// - Parameter isStored: whether a stored variant would answer the request.
    func refuseWhatIsKnown(
        _ finding: CacheFinding, _ admitted: AdmittedRequest, asks: Bool, isStored: Bool
    ) async throws(PipelineError) {
        if finding.isLocal {
            let found = try await fetch.inspect(finding, admitted)
            let header: ImageHeader
            do throws(RenderError) { header = try found.header.get() } catch {
                throw PipelineError(error, source: admitted.displayName)
            }
            if !isStored { try check(header, found.count, admitted) }
            return
        }
        if asks {
            try addresses?.check(admitted.url)
            return
        }
        if let record = finding.record {
            try fetch.check(
                Original(record: record, outcome: nil, mayStore: true, marks: finding.marks), admitted)
            if record.header == nil {
                throw PipelineError(
                    .notAnImage, "\(admitted.displayName): not an image in a supported format")
            }
        }
        guard !isStored, let record = finding.record, let header = record.header else { return }
        try check(header, record.length, admitted)
    }

    private func check(_ header: ImageHeader, _ count: Int, _ admitted: AdmittedRequest) throws(PipelineError) {
        guard let recipe = try admitted.recipe(for: header, limits.svg) else { return }
        do throws(RenderError) { try check(header, count, recipe, admitted) } catch {
            throw PipelineError(error, source: admitted.displayName)
        }
    }

    private func check(
        _ header: ImageHeader, _ count: Int, _ recipe: Recipe, _ admitted: AdmittedRequest
    ) throws(RenderError) {
        let libraries = render.libraries.known
        guard let header = header.page(recipe.page) else {
            throw RenderError(.notApplicable, "there is no page \(recipe.page)")
        }
        let output = recipe.resolvedOutput(
            for: header, negotiated: admitted.request.negotiated, with: libraries, svg: limits.svg)
        let job = RenderJob(
            original: EncodedBytes(count: count, read: { nil }), header: header, recipe: recipe, output: output,
            limits: limits)
        try job.checkLimits(memory: (renderer as? WorkerPool)?.memory)
        try job.checkSizes()
        try (renderer as? InProcessRenderer)?.checkFormat(header.format)
        if !job.isVector { try libraries.checkWrites(output.format) }
    }
}

extension AddressPolicy {
    /// Throws if the host of a URL is an address literal or `localhost` and the policy forbids the address. Other host
    /// names can be checked only after they have been resolved.
    func check(_ url: SourceURL) throws(PipelineError) {
        let addresses = refused(url)
        if !addresses.isEmpty { throw PipelineError(.refused(addresses, url)) }
    }
}
