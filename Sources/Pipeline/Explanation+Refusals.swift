import PipelineCaching
import PipelineFetching
import Variants

extension ImagePipeline {
    /// Throws the error this request would fail with, as far as it is known without contacting an origin or rendering:
    /// an unreadable file or one that is not an image, an address that policy refuses, an image over a limit.
    ///
    /// - Parameter isStored: whether a stored variant would answer the request.
    func refuseWhatIsKnown(
        _ finding: CacheFinding, _ admitted: AdmittedRequest, asks: Bool, isStored: Bool
    ) async throws(PipelineError) {
        if admitted.transport.isLocal {
            let found = try await fetch.look(finding, admitted)
            do throws(RenderError) {
                let header = try found.header.get()
                guard let recipe = admitted.request.recipe, !isStored else { return }
                try check(header, found.count, recipe, admitted)
            } catch {
                throw PipelineError(error, source: admitted.displayName)
            }
            return
        }
        if asks {
            try addresses?.check(admitted.url)
            return
        }
        if let record = finding.record {
            try fetch.check(
                Original(record: record, outcome: .none, mayStore: true, marks: finding.marks), admitted)
            if record.header == nil {
                throw PipelineError(
                    .notAnImage, "\(admitted.displayName): not an image in a format this pipeline reads")
            }
        }
        guard !isStored, let recipe = admitted.request.recipe, let record = finding.record, let header = record.header
        else { return }
        do throws(RenderError) { try check(header, record.length, recipe, admitted) } catch {
            throw PipelineError(error, source: admitted.displayName)
        }
    }

    private func check(
        _ header: ImageHeader, _ count: Int, _ recipe: Recipe, _ admitted: AdmittedRequest
    ) throws(RenderError) {
        let libraries = render.libraries.known
        let output = recipe.resolvedOutput(for: header, negotiated: admitted.request.negotiated, with: libraries)
        let job = RenderJob(
            original: EncodedBytes(count: count, read: { nil }), header: header, recipe: recipe, output: output,
            limits: limits)
        try job.checkLimits(memory: (renderer as? WorkerPool)?.memory)
        try job.checkSizes()
        try (renderer as? InProcessRenderer)?.checkFormat(header.format)
        try libraries.checkWrites(output.format)
    }
}

extension AddressPolicy {
    /// Refuses a URL whose host is an address literal, or `localhost`, that may not be connected to. Other names can
    /// only be checked once they are resolved.
    func check(_ url: SourceURL) throws(PipelineError) {
        let addresses = refused(url)
        if !addresses.isEmpty { throw PipelineError(.refused(addresses, url)) }
    }
}
