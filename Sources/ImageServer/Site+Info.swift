import HTTPCaching
import Pipeline
import PipelineSupport

extension Site {
    /// `/info`: what is known about an original, as JSON, with the freshness of the original and a validator of its own.
    func info(
        _ text: String, _ request: ServerRequest, _ grant: Signature.Grant
    ) async throws(Problem) -> ServerResponse {
        let asked = imageRequest(try source(named: text), for: request)
        let information: SourceInformation
        do throws(PipelineError) {
            information = try await pipeline.information(for: asked)
            // Clients would keep an answer without colours, so only what stays that way goes without.
            if let error = information.colourError, !Self.lasting.contains(error.code) { throw error }
        } catch {
            throw Problem(error)
        }
        var answer = information.response
        answer.bytes = Array((information.json(source: text, freshness: false) + "\n").utf8)
        answer.mediaType = "application/json"
        answer.digest = sha256Hex(answer.bytes)
        let varying = VariantAnswer.varying(
            original: answer.record.response.fields, forwarded: settings.forwarded, isNegotiated: false)
        return ConditionalAnswer.response(
            VariantAnswer.response(
                answer, varying: varying, naming: settings.tags.fields(of: answer.record), caching: caching,
                isAtHand: asked.isAtHand, expiry: grant.expiry, now: now()),
            to: request.fields, isHead: request.isHead, isOrigin: true, now: now())
    }

    /// Why a picture has no colours today and tomorrow.
    private static let lasting: Set<PipelineError.Code> = [
        .undecodable, .overLimit, .unsupportedFormat, .renderFailed, .renderCrashed,
    ]
}
