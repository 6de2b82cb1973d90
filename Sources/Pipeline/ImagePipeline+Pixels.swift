import PipelineCaching
import PipelineSupport
public import Variants

extension ImagePipeline {
    /// Returns the variant decoded to sRGB RGBA, for display. If decoded pixels have a budget (`memory.pixels`, off by
    /// default), they are kept for as long as the variant is valid. Freshness is still checked for every request.
    public func pixels(for request: ImageRequest) async throws(PipelineError) -> PixelBuffer {
        let generation = tiers.pixels.generation
        let response = try await respond(to: request)
        if let kept = tiers.decoded(response.digest) { return kept }
        var limits = limits
        // `decoders` restricts originals, but not variants that this pipeline has written.
        if request.recipe != nil { limits.formats.formUnion(ImageFormat.decodable) }
        return try await decodes.value(
            for: "\(response.digest)|\(request.recipe == nil)|\(response.isStorable)",
            priority: request.priority.taskPriority, finishWhenAbandoned: request.finishWhenAbandoned
        ) { [limits] () async throws(PipelineError) in
            let began = ContinuousClock.now
            let pixels = try await self.observe.stage(.render, await self.decoded(response.bytes, limits))
            if response.isStorable, request.recipe != nil || !limits.acceptsDamaged {
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
}
